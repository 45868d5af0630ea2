package io.deepep.bench.launch;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The test commands under {@code deepep launch}: a process for each rank. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LaunchedTestsTest {
    private record Outcome(int exitCode, List<String> out, List<String> err) {}

    private static Outcome launch(int ranks, String... command) {
        List<String> arguments =
                new ArrayList<>(List.of("launch", "-n", Integer.toString(ranks), "--"));
        arguments.addAll(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules=jdk.incubator.vector",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Main.class.getName()));
        arguments.addAll(List.of(command));
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode =
                Main.run(
                        arguments.toArray(String[]::new),
                        new PrintWriter(out, true),
                        new PrintWriter(err, true));
        return new Outcome(
                exitCode, out.toString().lines().toList(), err.toString().lines().toList());
    }

    @Test
    void normalMode() {
        Outcome outcome =
                launch(
                        2,
                        "test-intranode",
                        "--backend=host",
                        "--num-tokens=5",
                        "--hidden=256",
                        "--num-topk=3",
                        "--num-experts=8");
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        assertThat(outcome.out()).allMatch(line -> line.startsWith("[0] "));
        assertThat(outcome.out().getFirst()).contains("1 x 2 ranks", "2 processes");
        assertThat(outcome.out().getLast()).matches("\\[0\\] [1-9][0-9]* passed, 0 failed");
    }

    @Test
    void lowLatencyMode() {
        Outcome outcome =
                launch(
                        2,
                        "test-low-latency",
                        "--backend=host",
                        "--num-tokens=5",
                        "--hidden=256",
                        "--num-topk=3",
                        "--num-experts=8");
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        assertThat(outcome.out()).allMatch(line -> line.startsWith("[0] "));
        assertThat(outcome.out().getFirst()).contains("1 x 2 ranks", "2 processes");
        assertThat(outcome.out().getLast()).matches("\\[0\\] [1-9][0-9]* passed, 0 failed");
    }

    private static Outcome bench(String mode, Path json) {
        return launch(
                2,
                "bench",
                mode,
                "--backend=host",
                "--num-tokens=5",
                "--hidden=256",
                "--num-topk=3",
                "--num-experts=8",
                "--repeats=3",
                "--json=" + json);
    }

    @Test
    void benchOfLowLatencyMode(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("records.json");
        Outcome outcome = bench("low-latency", file);
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        assertThat(new ObjectMapper().readTree(file.toFile())).isNotEmpty();
    }

    @Test
    void benchOfNormalMode(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("records.json");
        Outcome outcome = bench("normal", file);
        assertThat(outcome.exitCode()).as("%s", outcome).isZero();
        assertThat(outcome.out().getFirst()).contains("1 x 2 ranks", "2 processes");
        assertThat(outcome.out().getLast()).matches("\\[0\\] [1-9][0-9]* passed, 0 failed");
        assertThat(new ObjectMapper().readTree(file.toFile())).hasSize(7);
    }

    @Test
    void otherNumbersOfRanksAreRefused() {
        Outcome outcome =
                launch(
                        2,
                        "test-intranode",
                        "--backend=host",
                        "--ranks=4",
                        "--num-tokens=5",
                        "--hidden=256");
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.err())
                .anyMatch(
                        line ->
                                line.endsWith(
                                        "4 ranks do not fit the 2 processes that were launched, one rank each"));
    }

    @Test
    void commandsOfOneProcessSayThatTheyAre() {
        Outcome outcome = launch(2, "bench", "decode", "--backend=host");
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.err())
                .anyMatch(
                        line ->
                                line.contains(
                                        "bench decode runs its ranks as threads of one process"));
    }
}
