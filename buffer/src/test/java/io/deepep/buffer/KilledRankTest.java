package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.lowlatency.KilledRank;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The process of a rank is killed in the middle of low-latency exchanges: the others report it, or
 * with masks on leave it out and go on; then they close and end by themselves.
 */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KilledRankTest {
    private static final int FIRST_PORT = 20_000;
    private static final int LAST_PORT = 32_767;

    /** Each backend with masks and without. */
    static Stream<Arguments> backends() {
        return TestBackends.load().usable().stream()
                // Ranks that share a GPU over NVSHMEM take turns on it: the loop would begin late.
                .filter(
                        backend ->
                                !backend.needsProcessPerRank()
                                        || CudaDriver.numDevices() >= KilledRank.NUM_RANKS)
                .flatMap(
                        backend ->
                                Stream.of(false, true).map(masks -> Arguments.of(backend, masks)));
    }

    @ParameterizedTest
    @MethodSource("backends")
    void othersLearnOfIt(TestBackend backend, boolean masks) throws Exception {
        int port = ThreadLocalRandom.current().nextInt(FIRST_PORT, LAST_PORT + 1);
        List<Process> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < KilledRank.NUM_RANKS; rank++) {
                ranks.add(start(rank, port, backend, masks));
            }
            Process victim = ranks.get(KilledRank.VICTIM);
            List<String> said = new ArrayList<>();
            assertThat(waitFor(victim, KilledRank.LOOPING, said)).as("%s", said).isTrue();
            victim.destroyForcibly().waitFor();
            List<String> survivors = new ArrayList<>();
            for (int rank = 0; rank < KilledRank.NUM_RANKS; rank++) {
                if (rank != KilledRank.VICTIM) {
                    survivors.addAll(output(ranks.get(rank)));
                }
            }
            if (masks) {
                assertThat(survivors)
                        .filteredOn(line -> line.equals(KilledRank.WENT_ON))
                        .as("%s", survivors)
                        .hasSize(KilledRank.NUM_RANKS - 1);
            } else {
                // Also by those who wait for a survivor that has stopped.
                assertThat(survivors)
                        .filteredOn(line -> line.startsWith(KilledRank.TIMED_OUT))
                        .as("%s", survivors)
                        .hasSize(KilledRank.NUM_RANKS - 1)
                        .allMatch((KilledRank.TIMED_OUT + KilledRank.VICTIM)::equals);
            }
        } finally {
            ranks.forEach(Process::destroyForcibly);
        }
    }

    private static Process start(int rank, int port, TestBackend backend, boolean masks)
            throws IOException {
        ProcessBuilder builder =
                ChildJvm.of(
                        KilledRankProgram.class,
                        List.of(
                                "-Xmx512m",
                                "--add-modules=jdk.incubator.vector",
                                "-Ddeepep.sysfs=" + HostTopology.SYSFS),
                        backend.name(),
                        Boolean.toString(masks));
        builder.environment()
                .putAll(
                        Map.of(
                                "RANK", Integer.toString(rank),
                                "WORLD_SIZE", Integer.toString(KilledRank.NUM_RANKS),
                                "LOCAL_RANK", Integer.toString(rank),
                                "LOCAL_WORLD_SIZE", Integer.toString(KilledRank.NUM_RANKS),
                                "MASTER_ADDR", "127.0.0.1",
                                "MASTER_PORT", Integer.toString(port)));
        return builder.start();
    }

    /** Reads until the process says {@code word}; false if it ends without. */
    private static boolean waitFor(Process process, String word, List<String> said)
            throws IOException {
        BufferedReader reader = process.inputReader();
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            said.add(line);
            if (line.equals(word)) {
                return true;
            }
        }
        return false;
    }

    /** All that the process says until it ends. */
    private static List<String> output(Process process) throws Exception {
        List<String> lines = process.inputReader().lines().toList();
        assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).as("%s", lines).isZero();
        return lines;
    }
}
