package io.deepep.bench.launch;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.CommandLines;
import io.deepep.bench.Main;
import io.deepep.bench.Outcome;
import io.deepep.spi.LoopbackPorts;
import io.deepep.testkit.Programs;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The test commands under {@code deepep launch}: a process for each rank. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Execution(ExecutionMode.CONCURRENT) // its cases wait for processes
class LaunchedTestsTest {
    private static final List<String> SMALL =
            List.of("--num-tokens=5", "--hidden=256", "--num-topk=3", "--num-experts=8");

    private static Outcome launch(List<String> options, String... command) {
        List<String> arguments = new ArrayList<>(List.of("launch", "-n", "2", "--"));
        arguments.addAll(rank(options, command));
        return CommandLines.run(arguments.toArray());
    }

    private static List<String> rank(List<String> options, String... command) {
        List<String> arguments = Programs.java(Main.class, Programs.SHORT_LIVED, command).command();
        arguments.add(1, "-Xmx512m");
        arguments.addAll(options);
        return arguments;
    }

    @ParameterizedTest
    @ValueSource(strings = {"test-intranode", "test-low-latency"})
    void tests(String command) {
        Outcome outcome = launch(SMALL, command, "--backend=host");
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        assertThat(outcome.outLines()).allMatch(line -> line.startsWith("[0] "));
        requireTwoProcesses(outcome);
    }

    /** A launcher on each of two hosts, which are one here. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "test-internode",
                "bench normal --repeats=3",
                "bench low-latency --repeats=3"
            })
    void ranksOfTwoHosts(String command, @TempDir Path folder) throws Exception {
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.addAll(List.of("--backend=host", "--nodes=2"));
        List<String> rank = rank(SMALL, words.toArray(String[]::new));
        int port = LoopbackPorts.free();
        List<Process> launchers = new ArrayList<>();
        for (int host = 0; host < 2; host++) {
            File out = folder.resolve(host + ".txt").toFile();
            launchers.add(launcher(host, port, rank).redirectOutput(out).start());
        }
        for (Process each : launchers) {
            int exitCode = each.waitFor();
            String out = Files.readString(folder.resolve("0.txt"));
            assertThat(exitCode).as(out + Files.readString(folder.resolve("1.txt"))).isZero();
            assertThat(out).contains("2 x 1 ranks", "2 processes on 2 hosts", " passed, 0 failed");
        }
    }

    /** Of one rank, the one of that number. */
    private static ProcessBuilder launcher(int host, int port, List<String> rank) {
        ProcessBuilder builder =
                CommandLines.process(
                        "launch -n 1 --nnodes=2 --master-addr=127.0.0.1 --master-port=%d --node-rank=%d --"
                                .formatted(port, host),
                        rank.toArray(String[]::new));
        builder.environment().put("DEEPEP_SECRET", "of the ranks of this test");
        return builder;
    }

    /** No fault of the command, which the trace of an exception would be taken for. */
    @Test
    void theLossOfARankIsToldInOneLine() throws Exception {
        List<String> rank = rank(SMALL, "test-internode", "--backend=host", "--nodes=2");
        int port = LoopbackPorts.free();
        Process lost = launcher(1, port, rank).start();
        Process first = launcher(0, port, rank).start();
        try (BufferedReader out = first.inputReader()) {
            assertThat(out.lines().filter(line -> line.endsWith("PASS")).findFirst()).isPresent();
            lost.destroyForcibly();
            assertThat(out.lines())
                    .anyMatch(line -> line.startsWith("[0] deepep: rank 1 was lost"))
                    .noneMatch(line -> line.contains("\tat "));
        }
        assertThat(first.waitFor()).isEqualTo(1);
    }

    private static void requireTwoProcesses(Outcome outcome) {
        assertThat(outcome.outLines().getFirst()).contains("1 x 2 ranks", "2 processes");
        assertThat(outcome.outLines().getLast()).matches("\\[0\\] [1-9][0-9]* passed, 0 failed");
    }

    @ParameterizedTest
    @CsvSource({"normal, 8", "low-latency, 10"})
    void benches(String mode, int numRecords, @TempDir Path folder) throws IOException {
        Path file = folder.resolve("records.json");
        Outcome outcome =
                launch(SMALL, "bench", mode, "--backend=host", "--repeats=3", "--json=" + file);
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        requireTwoProcesses(outcome);
        assertThat(new ObjectMapper().readTree(file.toFile())).hasSize(numRecords);
    }

    @Test
    void otherNumbersOfRanksAreRefused() {
        Outcome outcome = launch(SMALL, "test-intranode", "--backend=host", "--ranks=4");
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.errLines())
                .anyMatch(
                        line ->
                                line.endsWith(
                                        "4 ranks do not fit the 2 processes that were launched, one rank each"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"bench decode", "chaos"})
    void commandsThatStartTheirRanksRefuseALauncher(String command) {
        Outcome outcome = launch(List.of("--backend=host"), command.split(" "));
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.errLines())
                .anyMatch(
                        line ->
                                line.endsWith(
                                        command
                                                + " starts its ranks itself, but 2 processes were launched; start it"
                                                + " without a launcher"));
    }
}
