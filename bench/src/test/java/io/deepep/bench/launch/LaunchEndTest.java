package io.deepep.bench.launch;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.CommandLines;
import io.deepep.testkit.Programs;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What ends {@code deepep launch} ends its processes. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Execution(ExecutionMode.CONCURRENT) // its cases wait
class LaunchEndTest {
    /** Jobs that a shell runs in the background ignore this signal, and so do their children. */
    @Test
    void takesItsProcessesAlongWhenInterrupted() throws IOException, InterruptedException {
        Assumptions.assumeFalse(ignores(2), "SIGINT is ignored here: run it in the foreground");
        assertTakenAlong("INT", "echo $$; exec sleep 600", 128 + 2);
    }

    /** Of the processes that a terminal signals, a rank may be the first to end. */
    @Test
    void noRankIsBlamedForWhatEndsAll() throws IOException, InterruptedException {
        ProcessBuilder launch =
                CommandLines.process(
                        "launch -n 2 -- sh -c",
                        "launcher=$PPID; if [ $RANK = 0 ]; then"
                                + " (sleep 0.1; kill -TERM $launcher) >/dev/null 2>&1 & exit 143; fi; exec sleep 600");
        Programs.Ended ended = Programs.run(launch);
        assertThat(ended.output()).doesNotContain("ended with exit code");
        assertThat(ended.status()).isEqualTo(128 + 15);
    }

    private static boolean ignores(int signal) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
            String mask =
                    lines.filter(line -> line.startsWith("SigIgn:")).findFirst().orElseThrow();
            return (Long.parseUnsignedLong(mask.substring(mask.indexOf(':') + 1).strip(), 16)
                                    >> (signal - 1)
                            & 1)
                    != 0;
        }
    }

    /** With what they have started, and the secret. */
    @Test
    void takesItsProcessesAlongWhenKilled() throws IOException, InterruptedException {
        assertTakenAlong("KILL", "sleep 600 & echo $$ $!; wait", 128 + 9);
    }

    /** A terminal that hangs up signals all, and some go on: what watches them must, too. */
    @Test
    void takesThoseAlongThatOutliveTheTerminal() throws IOException, InterruptedException {
        assertTakenAlong(
                "KILL",
                "trap '' HUP TERM; sleep 1; for signal in HUP TERM; do"
                        + " kill -$signal $(cat /proc/$$/task/$$/children) 2>/dev/null; done;"
                        + " echo $$; sleep 600",
                128 + 9);
    }

    private static void assertTakenAlong(String signal, String script, int exitCode)
            throws IOException, InterruptedException {
        Process launcher =
                CommandLines.process("launch -n 2 -- sh -c", "echo $DEEPEP_SECRET_FILE; " + script)
                        .start();
        try (BufferedReader lines = launcher.inputReader(StandardCharsets.UTF_8)) {
            List<Long> pids = new ArrayList<>();
            Path secret = null;
            for (int line = 0; line < 4; line++) {
                String text = lines.readLine().substring(4);
                if (text.startsWith("/")) {
                    secret = Path.of(text);
                } else {
                    for (String pid : text.split(" ", -1)) {
                        pids.add(Long.parseLong(pid));
                    }
                }
            }
            assertThat(secret).exists();
            String pid = Long.toString(launcher.pid());
            assertThat(new ProcessBuilder("kill", "-" + signal, pid).start().waitFor()).isZero();
            assertThat(launcher.waitFor()).isEqualTo(exitCode);
            pids.forEach(LaunchTest::assertDead);
            assertThat(lines.readLine()).isNull();
            assertThat(secret).doesNotExist();
        } finally {
            launcher.destroyForcibly();
        }
    }
}
