package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.EpTopology;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalMisuses;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;

/**
 * Low-latency mode against the oracle: dispatch and the FP8 cast bit for bit, combine within the
 * rounding of fp32 sums.
 */
@BackendSuite
public record LowLatencyConformance(TestBackend backend) implements RankGroup {
    private static final int CHAINED_PAIRS = 300;
    private static final int DIFFERENT_PAIRS = 23;

    /** The most tokens of which GPUs of one node send results in packs. */
    private static final int FEW_TOKENS = 16;

    /** The same of a pre-reduced combine. */
    private static final int FEW_SUMS = 64;

    @Override
    public void limit(Buffer.Builder builder) {
        builder.lowLatency(new LowLatencyLimits(8, 256, 4, 8)).normal(NormalMisuses.LIMITS);
    }

    /** Pairs of dispatch and combine of all kinds, one after the other over one buffer. */
    @Tag("manyCalls")
    @Cases({"1, 4", "2, 2"})
    public void chainedPairs(RankContext context) {
        LowLatencyShape shape = shape(context);
        RoutingSpec varying = shape.spec().withVaryingTokens(true);
        List<LowLatencyRank> ranks =
                IntStream.range(0, DIFFERENT_PAIRS)
                        .mapToObj(i -> (i % 2 == 0 ? varying : shape.raggedSpec()).withSeed(i))
                        .map(spec -> shape.rank(context, spec))
                        .toList();
        LowLatencyFormat[] formats = LowLatencyFormat.values();
        for (int i = 0; i < CHAINED_PAIRS; i++) {
            ranks.get(i % ranks.size()).roundTrip(formats[i / 3 % formats.length]);
        }
    }

    private static LowLatencyShape shape(RankContext context) {
        return LowLatencyShape.of(context.topology(), 8, 256, 4, 8);
    }

    /** Dispatches whose combine never comes do no harm. */
    @Cases(from = "few")
    public void dispatchesWithoutCombine(LowLatencyShape shape, RankContext context) {
        LowLatencyRank rank = shape.rank(context);
        for (int i = 0; i < 5; i++) {
            rank.dispatch(LowLatencyFormat.FP8);
        }
        rank.roundTrip();
    }

    /** Both modes share a buffer and need no cleaning in between. */
    @Tag("manyCalls")
    @Cases({"1, 4", "2, 2"})
    public void alternatingWithNormalMode(RankContext context) {
        alternate(context);
    }

    /** The same by ranks that are virtual threads, of which there may be more than carriers. */
    @Cases({"1, 4", "2, 2"})
    public void onVirtualThreads(RankContext context) throws Exception {
        FutureTask<Void> calls = new FutureTask<>(() -> alternate(context), null);
        Thread.ofVirtual().name("rank-" + context.rank()).start(calls);
        calls.get();
    }

    private static void alternate(RankContext context) {
        LowLatencyRank rank = shape(context).raggedRank(context);
        NormalRank normal = NormalMisuses.rank(context);
        for (int i = 0; i < 8; i++) {
            normal.roundTrip();
            LowLatencyDispatchResult result = rank.dispatch(LowLatencyFormat.FP8);
            normal.roundTrip();
            rank.combine(result.handle());
        }
    }

    /**
     * Ranks with few tokens beside ranks with many, each in turn: results come home in packs or in
     * parts with flags, by the owner.
     */
    @Cases("1, 4")
    public void fewTokensAndMany() {
        LowLatencyShape shape = new LowLatencyShape(1, 4, 80, 896, 6, 8);
        RoutingSpec varying = shape.spec().withVaryingTokens(true);
        List<LowLatencyWorld> worlds =
                Stream.of(5L, 9L, 23L).map(varying::withSeed).map(shape::world).toList();
        for (int few : new int[] {FEW_TOKENS, FEW_SUMS}) {
            assertThat(worlds).allMatch(world -> tokens(world).anyMatch(number -> number <= few));
            assertThat(worlds).allMatch(world -> tokens(world).anyMatch(number -> number > few));
        }
        shape.run(
                backend(),
                _ -> {},
                context -> {
                    for (LowLatencyWorld world : worlds) {
                        LowLatencyRank rank = new LowLatencyRank(context, world);
                        rank.roundTrip();
                        LowLatencyHandle handle =
                                rank.dispatchWeighted(LowLatencyFormat.BF16).handle();
                        rank.combinePreReduced(handle);
                        rank.combinePreReduced(handle, CombineFormat.FP8);
                        rank.combine(handle, CombineFormat.FP8);
                    }
                });
    }

    private static IntStream tokens(LowLatencyWorld world) {
        return IntStream.range(0, world.routing().numRanks()).map(world.routing()::numTokens);
    }

    /** Two runs with new buffers give the same bits. */
    @Cases(from = "few")
    public void sameBitsOnEveryRun(LowLatencyShape shape) {
        shape.requireSameBits(backend(), shape.world(shape.raggedSpec()));
    }

    @Cases(from = "all")
    public void exactSizeHint(LowLatencyShape shape) {
        LowLatencyWorld world = shape.world();
        EpTopology topology = shape.topology();
        long bytes = Buffer.lowLatencyRdmaSizeHint(shape.limits(), topology);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .lowLatency(shape.limits());
                    requireIllegal(
                            builder.numRdmaBytes(bytes - 1)::open, "numRdmaBytes=" + (bytes - 1));
                    try (Buffer buffer = builder.numRdmaBytes(bytes).open()) {
                        RankContext context = new RankContext(backend(), communicator, buffer);
                        new LowLatencyRank(context, world).roundTrip(LowLatencyFormat.FP8_UE8M0);
                    }
                });
    }
}
