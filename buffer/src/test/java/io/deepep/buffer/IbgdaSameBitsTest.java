package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.DispatchResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The same calls give the same bits over cards that GPUs drive as over peer memory. */
class IbgdaSameBitsTest {
    @BeforeAll
    static void requireCard() {
        CardCases.requireCard();
    }

    /** What ranks received, by name. */
    private static final class Bits {
        private final Map<String, byte[]> bits = new ConcurrentSkipListMap<>();

        void put(RankContext context, String name, Tensor tensor) {
            Tensor dense = HostTensors.copyOf(tensor);
            bits.put(
                    "rank " + context.rank() + " " + name,
                    dense.segment().toArray(ValueLayout.JAVA_BYTE));
        }

        void requireSame(Bits other) {
            assertThat(bits).isNotEmpty();
            assertThat(other.bits.keySet()).isEqualTo(bits.keySet());
            bits.forEach((name, own) -> assertThat(other.bits.get(name)).as(name).isEqualTo(own));
        }
    }

    @ParameterizedTest
    @EnumSource(LowLatencyFormat.class)
    void lowLatency(LowLatencyFormat format) {
        requireSame(new LowLatencyShape(2, 2, 10, 512, 6, 12), format);
    }

    /** More ranks than a word has bits, for which there are other kernels. */
    @Test
    void lowLatencyOfALargeGroup() {
        requireSame(new LowLatencyShape(5, 7, 3, 256, 6, 70), LowLatencyFormat.FP8);
    }

    private static void requireSame(LowLatencyShape shape, LowLatencyFormat format) {
        Bits overPeers = lowLatency(BufferTestBackends.CUDA_VIRTUAL_NODES, shape, format);
        overPeers.requireSame(lowLatency(BufferTestBackends.CUDA_IBGDA, shape, format));
    }

    private static Bits lowLatency(
            TestBackend backend, LowLatencyShape shape, LowLatencyFormat format) {
        Bits bits = new Bits();
        Ranks.run(
                backend,
                shape.topology(),
                shape::limit,
                context -> {
                    LowLatencyRank rank = shape.raggedRank(context);
                    LowLatencyDispatchResult received = rank.dispatch(format);
                    Tensor counts = context.download(received.recvCount());
                    bits.put(context, "counts", counts);
                    Tensor x = context.download(received.recvX());
                    Tensor srcInfo = context.download(received.handle().srcInfo());
                    for (int expert = 0; expert < counts.size(0); expert++) {
                        long count = counts.getLong(expert);
                        String name = "expert " + expert;
                        bits.put(context, name + " x", x.select(0, expert).slice(0, 0, count));
                        bits.put(
                                context,
                                name + " srcInfo",
                                srcInfo.select(0, expert).slice(0, 0, count));
                        if (format.isFp8()) {
                            Tensor scales = context.download(received.recvScales());
                            bits.put(
                                    context,
                                    name + " scales",
                                    scales.select(0, expert).slice(0, 0, count));
                        }
                    }
                    bits.put(context, "combined", rank.combine(received.handle()));
                });
        return bits;
    }

    @ParameterizedTest
    @EnumSource(
            value = DType.class,
            names = {"BF16", "FP8_E4M3"})
    void normal(DType dtype) {
        Bits overPeers = normal(BufferTestBackends.CUDA_VIRTUAL_NODES, dtype);
        overPeers.requireSame(normal(BufferTestBackends.CUDA_IBGDA, dtype));
    }

    private static Bits normal(TestBackend backend, DType dtype) {
        RoutingSpec spec =
                RoutingSpec.of(4, 70, 16, 5).withMaskedShare(0.2).withVaryingTokens(true);
        NormalWorld world = NormalWorld.of(spec, 256, dtype);
        Bits bits = new Bits();
        Ranks.run(
                backend,
                Ranks.topology(2, 2),
                builder -> builder.normal(world.limits()),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchResult received = rank.dispatch();
                    bits.put(context, "x", context.download(received.recvX()));
                    bits.put(context, "topkIdx", context.download(received.recvTopkIdx()));
                    bits.put(context, "weights", context.download(received.recvTopkWeights()));
                    if (dtype == DType.FP8_E4M3) {
                        bits.put(context, "scales", context.download(received.recvScales()));
                    }
                    bits.put(context, "combined", rank.combine(received.handle()));
                });
        return bits;
    }
}
