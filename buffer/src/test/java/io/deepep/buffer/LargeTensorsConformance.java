package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.Bf16;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.posix.AvailableMemory;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Rows beyond byte 2^32, and on GPUs beyond element 2^32: all tokens of two ranks go to rank 0, and
 * come back.
 */
@Tag("slow")
@BackendSuite
record LargeTensorsConformance(TestBackend backend) {
    private static final int NUM_RANKS = 2;
    private static final int HIDDEN = 7168;
    private static final long ROW_BYTES = (long) DType.BF16.sizeBytes() * HIDDEN;
    private static final int TOKENS_ON_HOST = 152_000;
    private static final int TOKENS_ON_GPU = 302_000;
    private static final Duration PATIENCE = Duration.ofMinutes(4);

    /** Contents of rows, which repeat; what tells a row from all others is at its beginning. */
    private static final MemorySegment[] PATTERNS = patterns();

    private static final int DIGITS = 4;
    private static final int BASE = 128;

    @Test
    @Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void rowsComeBack() {
        EpTopology oneNode = new EpTopology(0, NUM_RANKS, NUM_RANKS);
        EpTopology topology = backend.supports(oneNode) ? oneNode : new EpTopology(0, NUM_RANKS, 1);
        int numTokens = backend.kind() == Device.Kind.HOST ? TOKENS_ON_HOST : TOKENS_ON_GPU;
        long needed = 8L * numTokens * ROW_BYTES;
        assumeTrue(AvailableMemory.bytes() > needed, () -> "needs " + needed + " bytes of memory");
        NormalLimits limits = NormalLimits.of(numTokens, HIDDEN, 1, NUM_RANKS);
        Ranks.run(
                backend,
                topology,
                builder -> builder.timeout(PATIENCE).normal(limits),
                context -> {
                    try (Arena arena = Arena.ofShared()) {
                        roundTrip(context, arena, numTokens);
                    }
                });
    }

    private static void roundTrip(RankContext context, Arena arena, int numTokens) {
        int rank = context.rank();
        Tensor x = onDevice(context, tokens(arena, rank, numTokens));
        Tensor topkIdx = onDevice(context, toRankZero(arena, numTokens));
        DispatchPlan plan = DispatchPlan.builder(x).topk(topkIdx, null, NUM_RANKS).build();
        DispatchResult received = context.buffer().dispatch(plan);
        assertThat(received.numRecvTokens()).isEqualTo(rank == 0 ? NUM_RANKS * numTokens : 0);
        if (rank == 0) {
            Tensor rows = onHost(context, received.recvX());
            for (int source = 0; source < NUM_RANKS; source++) {
                assertThat(wrongRows(rows, (long) source * numTokens, source, numTokens))
                        .as("rows of rank " + source)
                        .isZero();
            }
        }
        context.communicator().barrier(PATIENCE);
        CombinePlan back = CombinePlan.builder(received.recvX(), received.handle()).build();
        Tensor combined = onHost(context, context.buffer().combine(back).x());
        assertThat(wrongRows(combined, 0, rank, numTokens)).as("combined rows").isZero();
        context.communicator().barrier(PATIENCE);
    }

    private static Tensor onDevice(RankContext context, Tensor host) {
        return context.device().isHost() ? host : context.upload(host);
    }

    private static Tensor onHost(RankContext context, Tensor tensor) {
        return tensor.device().isHost() ? tensor : context.download(tensor);
    }

    private static MemorySegment[] patterns() {
        MemorySegment[] patterns = new MemorySegment[BASE];
        for (int shift = 0; shift < BASE; shift++) {
            patterns[shift] = MemorySegment.ofArray(new short[HIDDEN]);
            for (int h = 0; h < HIDDEN; h++) {
                put(patterns[shift], 0, h, (shift + 7 * h) % BASE);
            }
        }
        return patterns;
    }

    /** Any integer up to 256 is a BF16. */
    private static void put(MemorySegment rows, long row, int h, int value) {
        long at = row + (long) DType.BF16.sizeBytes() * h;
        rows.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, Bf16.fromFloat(value));
    }

    private static void write(MemorySegment rows, long at, int rank, int token) {
        MemorySegment.copy(PATTERNS[(token + rank) % BASE], 0, rows, at, ROW_BYTES);
        int rest = token;
        for (int digit = 0; digit < DIGITS; digit++, rest /= BASE) {
            put(rows, at, digit, rest % BASE + (digit == 0 ? BASE * rank : 0));
        }
    }

    private static Tensor tokens(Arena arena, int rank, int numTokens) {
        Tensor x = Tensor.allocate(arena, DType.BF16, numTokens, HIDDEN);
        IntStream.range(0, numTokens)
                .parallel()
                .forEach(token -> write(x.segment(), token * ROW_BYTES, rank, token));
        return x;
    }

    private static Tensor toRankZero(Arena arena, int numTokens) {
        return Tensor.allocate(arena, DType.I64, numTokens, 1);
    }

    private static long wrongRows(Tensor rows, long first, int rank, int numTokens) {
        long stride = DType.BF16.sizeBytes() * rows.stride(0);
        return IntStream.range(0, numTokens)
                .parallel()
                .filter(
                        token -> {
                            MemorySegment expected = MemorySegment.ofArray(new short[HIDDEN]);
                            write(expected, 0, rank, token);
                            long at = (first + token) * stride;
                            return MemorySegment.mismatch(
                                            rows.segment(),
                                            at,
                                            at + ROW_BYTES,
                                            expected,
                                            0,
                                            ROW_BYTES)
                                    >= 0;
                        })
                .count();
    }
}
