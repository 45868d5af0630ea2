package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.CommandLines;
import io.deepep.testkit.Programs;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@code deepep chaos} on the host backend, in short: long runs are made with the command. Seeds
 * are such that no process dies before it has joined, as the others wait four time-outs for one.
 */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Execution(ExecutionMode.CONCURRENT) // its cases wait
class ChaosTest {
    private static final char ENDED = 'Z';

    @TempDir private Path folder;

    private JsonNode run(String arguments) throws Exception {
        Path file = folder.resolve("chaos.json");
        Programs.Ended ended =
                Programs.run(
                        CommandLines.process(
                                "chaos --timeout-millis 10000 --json " + file + " " + arguments));
        assertThat(ended.requireSuccess()).contains("0 promises broken");
        return new ObjectMapper().readTree(file.toFile()).get("report");
    }

    /** Over all kinds of trials. */
    static int sum(JsonNode report, String count) {
        return report.get("tallies").valueStream().mapToInt(kind -> kind.get(count).asInt()).sum();
    }

    @Test
    void threads() throws Exception {
        JsonNode report = run("--ranks-are threads --actions throw,leave --trials 20 --seed 1");
        assertThat(sum(report, "tried")).isEqualTo(20);
        assertThat(sum(report, "verified")).isEqualTo(20);
        assertThat(sum(report, "named")).isPositive();
        assertThat(sum(report, "named") + sum(report, "unharmed")).isEqualTo(20 * 3);
    }

    @Test
    void processesAcrossVirtualNodes() throws Exception {
        JsonNode report =
                run(
                        "--ranks-are processes --actions kill,pause --trials 4 --seed 75"
                                + " --ranks-per-node 2");
        assertThat(sum(report, "verified")).isEqualTo(4);
        assertThat(sum(report, "named")).isPositive();
        assertThat(sum(report, "replaced")).isPositive();
        assertThat(report.get("leftOver").get("PROCESSES").get("mappings").asInt()).isZero();
    }

    @Test
    void whatWasMadeIsToldWhenItIsInterrupted() throws Exception {
        Path file = folder.resolve("chaos.json");
        Process process =
                CommandLines.process(
                                "chaos --ranks-are threads --ranks 2 --trials 100000 --seed 6",
                                "--json=" + file)
                        .redirectErrorStream(false)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try {
            BufferedReader out = process.inputReader();
            assertThat(out.readLine()).contains("seed 6");
            while (process.descendants().findAny().isEmpty()) {
                assertThat(process.isAlive()).isTrue();
                Thread.sleep(100);
            }
            process.waitFor(2, TimeUnit.SECONDS); // for a few trials
            process.toHandle().destroy(); // Process.destroy would close its output
            List<String> told = out.lines().toList();
            assertThat(told)
                    .anyMatch(
                            line ->
                                    line.startsWith("interrupted; to go on: --seed 6 --from ")
                                            && line.contains(" --ranks=2")
                                            && line.contains(" --ranks-are=threads")
                                            && !line.contains("--json"));
            assertThat(told).anyMatch(line -> line.endsWith(" trials, 0 promises broken"));
            JsonNode report = new ObjectMapper().readTree(file.toFile()).get("report");
            assertThat(sum(report, "tried")).isEqualTo(report.get("made").asInt());
            assertThat(process.waitFor()).isNotZero();
        } finally {
            process.destroyForcibly();
        }
    }

    /** It cannot see that nobody tells it anything any more. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStoppedRankEndsWithWhoStoppedIt(boolean killed) throws Exception {
        Process process =
                CommandLines.process(
                                "chaos --ranks-are processes --actions freeze --ranks 2 --groups 1"
                                        + " --seed 3 --timeout-millis 60000")
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        List<ProcessHandle> ranks = List.of();
        try {
            while (ranks.stream().noneMatch(rank -> state(rank) == 'T')) {
                assertThat(process.isAlive()).isTrue();
                Thread.sleep(100);
                ranks = process.descendants().toList();
            }
            if (killed) {
                process.destroyForcibly();
            } else {
                process.destroy();
            }
            assertThat(process.waitFor()).isNotZero();
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (ranks.stream().anyMatch(rank -> state(rank) != ENDED)) {
                assertThat(System.nanoTime()).as("a rank is left").isLessThan(end);
                Thread.sleep(100);
            }
        } finally {
            process.destroyForcibly();
            ranks.forEach(ProcessHandle::destroyForcibly);
        }
    }

    /** As in its /proc; one that nobody waits for, as who started it has ended, may stay there. */
    private static char state(ProcessHandle process) {
        try {
            String stat = Files.readString(Path.of("/proc/" + process.pid() + "/stat"));
            return stat.charAt(stat.lastIndexOf(')') + 2);
        } catch (IOException ended) {
            return ENDED;
        }
    }

    @Test
    void newRanksInOpenBuffers() throws Exception {
        JsonNode report =
                run(
                        "--ranks 3 --ranks-are processes --actions kill --return replace --trials 4"
                                + " --seed 27");
        assertThat(sum(report, "verified")).isEqualTo(4);
        assertThat(sum(report, "replacedInPlace")).isPositive();
        assertThat(sum(report, "replacedInPlace") + sum(report, "replaced")).isEqualTo(4);
        assertThat(report.get("leftOver").get("PROCESSES").get("mappings").asInt()).isZero();
        assertThat(report.get("leftOver").get("PROCESSES").get("descriptors").asInt())
                .isLessThan(16);
    }
}
