package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.ibgda.NicGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.NativeCallException;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.nic.NicFaults;
import io.deepep.testkit.nic.SoftwareNic;
import io.deepep.testkit.nic.WorkEntry;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
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
    private static final int HIDDEN = 2176;
    private static final int TOPK = 4;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(TOKENS, HIDDEN, 12, TOPK);
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

    /** Tokens, selections and weights of all ranks. */
    private record Inputs(List<Tensor> x, List<Tensor> topkIdx, List<Tensor> weights) {}

    private Inputs inputs(NicRanks ranks, long seed) {
        Random random = new Random(seed);
        Inputs inputs = new Inputs(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        for (int rank = 0; rank < NicRanks.NUM_RANKS; rank++) {
            int numTokens = TOKENS - rank;
            MemorySegment x = arena.allocate(ValueLayout.JAVA_SHORT, (long) numTokens * HIDDEN);
            for (int i = 0; i < numTokens * HIDDEN; i++) {
                float value = (float) random.nextGaussian();
                x.setAtIndex(
                        ValueLayout.JAVA_SHORT, i, (short) (Float.floatToIntBits(value) >> 16));
            }
            MemorySegment topkIdx = arena.allocate(ValueLayout.JAVA_LONG, (long) numTokens * TOPK);
            MemorySegment weights = arena.allocate(ValueLayout.JAVA_FLOAT, (long) numTokens * TOPK);
            for (int i = 0; i < numTokens * TOPK; i++) {
                int expert = random.nextInt(-1, LIMITS.numExperts());
                topkIdx.setAtIndex(ValueLayout.JAVA_LONG, i, expert);
                weights.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
            }
            inputs.x().add(ranks.upload(rank, DType.BF16, x, numTokens, HIDDEN));
            inputs.topkIdx().add(ranks.upload(rank, DType.I64, topkIdx, numTokens, TOPK));
            inputs.weights().add(ranks.upload(rank, DType.F32, weights, numTokens, TOPK));
        }
        return inputs;
    }

    /** What all ranks receive and combine, round by round. */
    private List<byte[]> run(
            NicRanks ranks, LowLatencyFormat format, boolean logFmt, boolean preReduced) {
        List<byte[]> outcome = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            Inputs inputs = inputs(ranks, round);
            List<LowLatencyDispatchResult> received =
                    ranks.dispatch(
                            inputs.x(),
                            inputs.topkIdx(),
                            preReduced ? inputs.weights() : null,
                            format);
            for (int rank = 0; rank < NicRanks.NUM_RANKS; rank++) {
                outcome.add(ranks.received(rank, received.get(rank), format));
            }
            if (format != LowLatencyFormat.BF16) {
                continue;
            }
            List<LowLatencyCombineResult> combined =
                    ranks.combine(
                            received,
                            inputs.topkIdx(),
                            preReduced ? null : inputs.weights(),
                            logFmt);
            for (int rank = 0; rank < NicRanks.NUM_RANKS; rank++) {
                Tensor out = combined.get(rank).x();
                outcome.add(ranks.download(rank, out, 2 * out.numElements()));
            }
        }
        return outcome;
    }

    @ParameterizedTest
    @CsvSource({
        "BF16, false, false, 0",
        "BF16, true, false, 20",
        "BF16, false, true, 50",
        "BF16, true, true, 0",
        "FP8, false, false, 50",
        "FP8_UE8M0, false, false, 0"
    })
    void sameAsOverMappedMemory(
            LowLatencyFormat format, boolean logFmt, boolean preReduced, int completionDelay) {
        faults.delayCompletions(completionDelay);
        List<byte[]> mapped;
        try (NicRanks ranks = open(false, TIMEOUT)) {
            mapped = run(ranks, format, logFmt, preReduced);
        }
        assertThat(numEntries).hasValue(0);
        try (NicRanks ranks = open(true, TIMEOUT)) {
            List<byte[]> byNetwork = run(ranks, format, logFmt, preReduced);
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
            Inputs inputs = inputs(ranks, 1);
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
