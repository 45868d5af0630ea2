package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process that may have fewer threads than its group has ranks. */
class FewThreadsTest {
    private static final int NUM_RANKS = 64;

    /** Stacks of 1 GiB each, of which 20 GB have room for some. */
    private static final String COMMAND = "ulimit -v 20000000 && exec \"$@\"";

    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aRankThatGetsNoThreadHasFailed() throws Exception {
        assumeTrue(System.getProperty("os.name").equals("Linux"), "ulimit -v is Linux's");
        Process process =
                new ProcessBuilder(
                                "/bin/sh",
                                "-c",
                                COMMAND,
                                "sh",
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-Xss1g",
                                "-Xmx64m",
                                "-XX:+UseSerialGC",
                                "-XX:TieredStopAtLevel=1",
                                "-Xlog:disable",
                                "-cp",
                                System.getProperty("java.class.path"),
                                Program.class.getName())
                        .redirectErrorStream(true)
                        .start();
        try {
            List<String> said = process.inputReader().lines().toList();
            assertThat(said).hasSize(2);
            assertThat(said.getFirst())
                    .matches("rank \\d+ failed: .*OutOfMemoryError.*native thread.*");
            assertThat(said.getLast()).isEqualTo("0 ranks still wait");
        } finally {
            process.destroyForcibly();
        }
    }

    /** Says how a group ends whose ranks wait for one another. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws InterruptedException {
            InProcessGroup group = InProcessGroup.of(NUM_RANKS);
            try {
                group.run(communicator -> communicator.barrier(Duration.ofMinutes(1)));
            } catch (RankFailedException | OutOfMemoryError failure) {
                System.out.println(failure.getMessage());
            }
            long waiting =
                    Thread.getAllStackTraces().keySet().stream()
                            .filter(thread -> thread.getName().startsWith("deepep-rank-"))
                            .count();
            System.out.println(waiting + " ranks still wait");
        }
    }
}
