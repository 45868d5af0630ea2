package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.BesideOthers;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The process of a rank is killed in the middle of exchanges: the others report it, or with masks
 * on leave it out and go on; then they close and end by themselves.
 */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@BesideOthers
class KilledRankTest {
    /** Each backend with masks and without. */
    static Stream<Arguments> backends() {
        return TestBackends.load().usable().stream()
                .flatMap(
                        backend ->
                                Stream.of(false, true).map(masks -> Arguments.of(backend, masks)));
    }

    @ParameterizedTest
    @MethodSource("backends")
    void othersLearnOfIt(TestBackend backend, boolean masks) throws Exception {
        List<String> survivors = kill(3, backend, masks, false);
        if (masks) {
            requireAll(survivors, KilledRankProgram.WENT_ON, 2);
        } else {
            // Also by those who wait for a survivor that has stopped.
            assertThat(survivors)
                    .filteredOn(line -> line.startsWith(KilledRankProgram.TIMED_OUT))
                    .as("%s", survivors)
                    .hasSize(2)
                    .allMatch((KilledRankProgram.TIMED_OUT + KilledRankProgram.VICTIM)::equals);
        }
    }

    /** The same of backends whose ranks can be masked in normal mode. */
    static Stream<TestBackend> maskingBackends() {
        return TestBackends.load().usable().stream()
                .filter(backend -> !backend.needsProcessPerRank() && backend.outlivesRanks());
    }

    @ParameterizedTest(allowZeroInvocations = true)
    @MethodSource("maskingBackends")
    void othersGoOnInNormalMode(TestBackend backend) throws Exception {
        List<String> survivors = kill(4, backend, true, true);
        requireAll(survivors, KilledRankProgram.WENT_ON, 3);
    }

    private static void requireAll(List<String> said, String word, int times) {
        assertThat(said).filteredOn(word::equals).as("%s", said).hasSize(times);
    }

    /** What the others say once the victim is dead. */
    private static List<String> kill(
            int numRanks, TestBackend backend, boolean masks, boolean normal) throws Exception {
        int port = LoopbackPorts.free();
        List<Process> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < numRanks; rank++) {
                ranks.add(
                        new RankJvm(rank, numRanks, port)
                                .of(
                                        KilledRankProgram.class,
                                        backend.name(),
                                        Boolean.toString(masks),
                                        Boolean.toString(normal))
                                .start());
            }
            Process victim = ranks.get(KilledRankProgram.VICTIM);
            List<String> said = new ArrayList<>();
            assertThat(waitFor(victim, KilledRankProgram.LOOPING, said)).as("%s", said).isTrue();
            victim.destroyForcibly().waitFor();
            List<String> survivors = new ArrayList<>();
            int failed = 0;
            for (int rank = 0; rank < numRanks; rank++) {
                if (rank != KilledRankProgram.VICTIM) {
                    survivors.addAll(ranks.get(rank).inputReader().lines().toList());
                    assertThat(ranks.get(rank).waitFor(10, TimeUnit.SECONDS)).isTrue();
                    failed += ranks.get(rank).exitValue() == 0 ? 0 : 1;
                }
            }
            assertThat(failed).as("%s", survivors).isZero();
            return survivors;
        } finally {
            ranks.forEach(Process::destroyForcibly);
        }
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
}
