package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.Device;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.ibgda.NicGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.NativeCallException;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.nic.NicFaults;
import io.deepep.testkit.nic.SoftwareNic;
import io.deepep.testkit.nic.WorkEntry;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The low-latency kernels with a network between the nodes: queues that the GPU writes, and the
 * software network card. What comes out is the same, bit by bit, as where all heaps are mapped.
 */
class LowLatencyOverNicTest {
    private static final int TOKENS = 12;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(TOKENS, 2176, 12, 4);
    private static final int ROUNDS = 5;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final Arena arena = Arena.ofShared();
    private final NicFaults faults = new NicFaults();
    private final AtomicLong numEntries = new AtomicLong();

    private NicRanks open(boolean byNetwork, Duration timeout) {
        SoftwareNic nic = new SoftwareNic(faults, 3, this::count);
        return new NicRanks(nic, LIMITS, byNetwork, timeout);
    }

    private void count(WorkEntry entry) {
        numEntries.incrementAndGet();
    }

    @BeforeAll
    static void requireCuda() {
        boolean built =
                LowLatencyOverNicTest.class.getResource(
                                "/io/deepep/lowlatency/lowlatency_ibgda_dispatch.fatbin")
                        != null;
        String reason = CudaDriver.unavailabilityReason().orElse(built ? "" : "built without nvcc");
        RequiredBackends.assume(Device.Kind.CUDA, reason.isEmpty(), reason);
    }

    @AfterEach
    void close() {
        arena.close();
    }

    @ParameterizedTest
    @CsvSource({
        "BF16, BF16, false, 0",
        "BF16, LOGFMT, false, 20",
        "BF16, FP8, false, 10",
        "BF16, BF16, true, 50",
        "BF16, LOGFMT, true, 0",
        "BF16, FP8, true, 30",
        "FP8, BF16, false, 50",
        "FP8_UE8M0, BF16, false, 0"
    })
    void sameAsOverMappedMemory(
            LowLatencyFormat format, CombineFormat home, boolean preReduced, int completionDelay) {
        faults.delayCompletions(completionDelay);
        List<byte[]> mapped;
        try (NicRanks ranks = open(false, TIMEOUT)) {
            mapped = new Exchanges(ranks, arena).run(ROUNDS, format, home, preReduced);
        }
        assertThat(numEntries).hasValue(0);
        try (NicRanks ranks = open(true, TIMEOUT)) {
            List<byte[]> byNetwork =
                    new Exchanges(ranks, arena).run(ROUNDS, format, home, preReduced);
            for (int i = 0; i < mapped.size(); i++) {
                assertThat(byNetwork.get(i)).as("outcome %d", i).isEqualTo(mapped.get(i));
            }
            for (int rank = 0; rank < NicRanks.NUM_RANKS; rank++) {
                ranks.group().queues(rank).check();
            }
        }
        assertThat(numEntries).hasValueGreaterThan(ROUNDS * TOKENS);
    }

    /** The peer that waits in vain reports the time, the rank whose put failed what failed. */
    @Test
    void errorCompletionIsATimeoutThereAndNamedHere() {
        faults.fail(NicGroup.number(0, 2, 0), 0, 0x13);
        Duration timeout = Duration.ofMillis(300);
        try (NicRanks ranks = open(true, timeout)) {
            Exchanges.Inputs inputs = new Exchanges(ranks, arena).inputs(1);
            assertThatThrownBy(
                            () ->
                                    ranks.dispatch(
                                            inputs.x(),
                                            inputs.topkIdx(),
                                            null,
                                            LowLatencyFormat.BF16))
                    .isInstanceOf(DeepEpTimeoutException.class);
            assertThatThrownBy(() -> ranks.group().queues(0).check())
                    .isInstanceOf(NativeCallException.class)
                    .hasMessageContaining("to rank 2");
            ranks.group().queues(3).check();
        }
    }
}
