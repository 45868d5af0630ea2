package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.Device;
import io.deepep.buffer.KilledRankProgram.Where;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.conformance.KilledRank;
import io.deepep.testkit.conformance.RequiredBackends;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The process of a rank is killed in the middle of low-latency exchanges: the others report it, or
 * with masks on leave it out and go on; then they close and end by themselves.
 */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KilledRankTest {
    private static final int FIRST_PORT = 20_000;
    private static final int LAST_PORT = 32_767;

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void onTheHost(boolean masks) throws Exception {
        killAndListen(Where.HOST, masks);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void onGpus(boolean masks) throws Exception {
        requireGpu();
        killAndListen(Where.GPUS, masks);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void acrossNodes(boolean masks) throws Exception {
        requireGpu();
        killAndListen(Where.NODES, masks);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void overNvshmem(boolean masks) throws Exception {
        requireGpu();
        NvshmemTestBackend.assumeNvshmem();
        // Ranks that share a GPU take turns on it, so that the loop does not begin in time.
        assumeTrue(CudaDriver.devices().size() >= KilledRank.NUM_RANKS, "needs a GPU per rank");
        killAndListen(Where.NVSHMEM, masks);
    }

    private static void requireGpu() {
        RequiredBackends.assume(
                Device.Kind.CUDA,
                CudaDriver.isAvailable(),
                CudaDriver.unavailabilityReason().orElse(""));
    }

    private static void killAndListen(Where where, boolean masks) throws Exception {
        int port = ThreadLocalRandom.current().nextInt(FIRST_PORT, LAST_PORT + 1);
        List<Process> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < KilledRank.NUM_RANKS; rank++) {
                ranks.add(start(rank, port, where, masks));
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

    private static Process start(int rank, int port, Where where, boolean masks)
            throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules=jdk.incubator.vector",
                        "-cp",
                        System.getProperty("java.class.path"),
                        KilledRankProgram.class.getName(),
                        where.name(),
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
        return builder.redirectErrorStream(true).start();
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
