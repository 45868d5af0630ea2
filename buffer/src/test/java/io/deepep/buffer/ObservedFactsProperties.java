package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.observe.CallFacts;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** What observers are told of rows and bytes, counted again from the routing alone. */
final class ObservedFactsProperties {
    private static final int HIDDEN = 256;
    private static final int MOST_TOKENS = 9;
    private static final long BF16_ROW = 2 * HIDDEN;
    private static final long FP8_ROW = HIDDEN + 4 * HIDDEN / 128;
    private static final long LOGFMT_ROW = HIDDEN / 128 * (8 + 128 * 10 / 8);

    record Case(EpTopology topology, Routing routing) {
        long[] from(int rank) {
            return Arrays.stream(routing.tokensPerRank()[rank]).asLongStream().toArray();
        }

        long[] to(int rank) {
            return column(routing.tokensPerRank(), rank);
        }

        static long[] column(int[][] rows, int rank) {
            return Arrays.stream(rows).mapToLong(row -> row[rank]).toArray();
        }

        int[] experts(int rank) {
            int[] counts = new int[routing.numLocalExperts()];
            for (int src = 0; src < routing.numRanks(); src++) {
                for (long[] token : routing.topkIdx(src)) {
                    for (long expert : token) {
                        int local = routing.localExpert(expert, rank);
                        if (local >= 0) {
                            counts[local]++;
                        }
                    }
                }
            }
            return counts;
        }
    }

    @Provide
    Arbitrary<Case> cases() {
        Arbitrary<Integer> nodes = Arbitraries.integers().between(1, 3);
        Arbitrary<Integer> ranks = Arbitraries.integers().between(1, 4);
        Arbitrary<Integer> localExperts = Arbitraries.integers().between(1, 3);
        Arbitrary<Integer> tokens = Arbitraries.integers().between(0, MOST_TOKENS);
        Arbitrary<Integer> topk = Arbitraries.integers().between(1, 4);
        Arbitrary<Boolean> untidy = Arbitraries.of(true, false);
        return Combinators.combine(
                        nodes, ranks, localExperts, tokens, topk, untidy, Arbitraries.longs())
                .as(
                        (n, r, e, t, k, u, seed) ->
                                new Case(
                                        new EpTopology(0, n * r, r),
                                        RoutingSpec.of(n * r, t, n * r * e, Math.min(k, n * r * e))
                                                .withMaskedShare(u ? 0.3 : 0)
                                                .withDuplicateShare(u ? 0.3 : 0)
                                                .withVaryingTokens(u)
                                                .withSeed(seed)
                                                .generate()));
    }

    /** What a rank does with its buffer, and the facts of its latest call. */
    @FunctionalInterface
    private interface Calls {
        void run(int rank, Buffer buffer, List<CallFacts> told);
    }

    private static void onEachRank(Case each, Calls calls) throws Exception {
        int numTopk = each.routing().numTopk();
        int numExperts = each.routing().numExperts();
        try (InProcessGroup group = InProcessGroup.of(each.topology().numRanks())) {
            group.run(
                    communicator -> {
                        List<CallFacts> told = new CopyOnWriteArrayList<>();
                        try (Buffer buffer =
                                Buffer.builder(communicator)
                                        .ranksPerNode(each.topology().numNvlRanks())
                                        .normal(
                                                NormalLimits.of(
                                                        MOST_TOKENS, HIDDEN, numTopk, numExperts))
                                        .lowLatency(
                                                new LowLatencyLimits(
                                                        MOST_TOKENS, HIDDEN, numTopk, numExperts))
                                        .observer(call -> told.add(call.facts()))
                                        .open()) {
                            calls.run(communicator.rank(), buffer, told);
                        }
                    });
        }
    }

    private static void require(
            CallFacts facts, long row, Traffic traffic, long[] sent, long[] received) {
        assertThat(facts.rowBytes()).isEqualTo(row);
        assertThat(facts.nvlinkBytes()).isEqualTo(traffic.nvlinkRows() * row);
        assertThat(facts.rdmaBytes()).isEqualTo(traffic.rdmaRows() * row);
        assertThat(facts.sentRows()).isEqualTo(sent);
        assertThat(facts.receivedRows()).isEqualTo(received);
    }

    @Property(tries = 40, edgeCases = EdgeCasesMode.NONE)
    void normalMode(
            @ForAll("cases") Case each,
            @ForAll boolean fp8,
            @ForAll boolean expanded,
            @ForAll @IntRange(min = 1, max = 5) int alignment,
            @ForAll boolean asynchronous)
            throws Exception {
        CallOptions options = asynchronous ? CallOptions.async() : CallOptions.sync();
        onEachRank(
                each,
                (rank, buffer, told) -> {
                    Routing routing = each.routing();
                    int tokens = routing.numTokens(rank);
                    Tensor x =
                            HostTensors.allocate(fp8 ? DType.FP8_E4M3 : DType.BF16, tokens, HIDDEN);
                    Tensor scales =
                            fp8 ? HostTensors.allocate(DType.F32, tokens, HIDDEN / 128) : null;
                    Traffic traffic = Traffic.normal(routing, each.topology(), rank);
                    DispatchResult result =
                            buffer.dispatch(
                                    DispatchPlan.builder(x, scales)
                                            .topk(
                                                    routing.topkIdxTensor(rank),
                                                    null,
                                                    routing.numExperts())
                                            .expanded(expanded)
                                            .expertAlignment(alignment)
                                            .build(),
                                    options);
                    result.event().synchronize();
                    CallFacts out = told.getLast();
                    require(out, fp8 ? FP8_ROW : BF16_ROW, traffic, each.from(rank), each.to(rank));
                    assertThat(out.numTokens()).isEqualTo(tokens);
                    assertThat(out.numRecvTokens()).isEqualTo(Arrays.stream(each.to(rank)).sum());
                    int[] aligned = each.experts(rank);
                    Arrays.setAll(aligned, e -> Math.ceilDiv(aligned[e], alignment) * alignment);
                    assertThat(out.expertTokens()).isEqualTo(aligned);
                    Tensor y = HostTensors.allocate(DType.BF16, result.numRecvTokens(), HIDDEN);
                    buffer.combine(CombinePlan.builder(y, result.handle()).build(), options)
                            .event()
                            .synchronize();
                    CallFacts home = told.getLast();
                    require(home, BF16_ROW, traffic, each.to(rank), each.from(rank));
                    assertThat(home.numRecvTokens())
                            .isEqualTo(Arrays.stream(each.from(rank)).sum());
                    assertThat(told).hasSize(2);
                });
    }

    @Property(tries = 40, edgeCases = EdgeCasesMode.NONE)
    void lowLatencyMode(
            @ForAll("cases") Case each,
            @ForAll LowLatencyFormat format,
            @ForAll CombineFormat home,
            @ForAll boolean preReduced)
            throws Exception {
        boolean sums = preReduced && home != CombineFormat.LOGFMT;
        onEachRank(
                each,
                (rank, buffer, told) -> {
                    Routing routing = each.routing();
                    Tensor x = HostTensors.allocate(DType.BF16, routing.numTokens(rank), HIDDEN);
                    Tensor topk = routing.topkIdxTensor(rank);
                    Tensor weights = routing.weightsTensor(rank);
                    LowLatencyDispatchResult result =
                            buffer.lowLatencyDispatch(
                                    LowLatencyDispatchPlan.builder(x, topk)
                                            .topkWeights(weights)
                                            .format(format)
                                            .build());
                    CallFacts out = told.getLast();
                    require(
                            out,
                            format.isFp8() ? FP8_ROW : BF16_ROW,
                            Traffic.lowLatency(routing, each.topology(), rank),
                            each.from(rank),
                            each.to(rank));
                    assertThat(out.expertTokens()).isEqualTo(each.experts(rank));
                    assertThat(out.numRecvTokens())
                            .isEqualTo(Arrays.stream(each.experts(rank)).sum());
                    Tensor y = HostTensors.allocate(DType.BF16, result.recvX().shape());
                    buffer.lowLatencyCombine(
                            (sums
                                            ? LowLatencyCombinePlan.preReduced(
                                                    y, topk, result.handle())
                                            : LowLatencyCombinePlan.builder(
                                                    y, topk, weights, result.handle()))
                                    .format(home)
                                    .build());
                    int[][] rows = sums ? routing.tokensPerRank() : routing.selectionsPerRank();
                    long[] own = Arrays.stream(rows[rank]).asLongStream().toArray();
                    CallFacts back = told.getLast();
                    require(
                            back,
                            switch (home) {
                                case BF16 -> BF16_ROW;
                                case FP8 -> FP8_ROW;
                                case LOGFMT -> LOGFMT_ROW;
                            },
                            Traffic.direct(each.topology(), rank, rows[rank]),
                            Case.column(rows, rank),
                            own);
                    assertThat(back.numRecvTokens()).isEqualTo(Arrays.stream(own).sum());
                });
    }
}
