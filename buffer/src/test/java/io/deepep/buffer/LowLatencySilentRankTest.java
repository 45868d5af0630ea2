package io.deepep.buffer;

import static io.deepep.buffer.ForgedWords.count;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import java.time.Duration;
import java.util.function.Consumer;

/** As {@link NormalSilentRankTest}, in low-latency mode: a rank begins a call, and stops there. */
@BackendSuite
@BesideOthers
record LowLatencySilentRankTest(TestBackend backend) {
    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    /** A wait that lasts so long never ends in a test. */
    private static final Duration LONG = Duration.ofHours(1);

    /** Words of a header that a warp waits for together. */
    private static final int HEADER_PART = 64;

    /**
     * On a GPU the header comes first and no rows follow it; on the host a word of it does, and the
     * rest follows the rows.
     */
    @Cases({"1, 3", "2, 2"})
    void inADispatch(int nodes, int ranksPerNode) {
        runWithoutRank1(
                nodes,
                ranksPerNode,
                builder -> builder.timeout(TIMEOUT).startTimeout(LONG),
                rank -> {
                    beginDispatchFor(rank.context(), 1);
                    DeepEpTimeoutException failure =
                            Misbehaviour.requirePeer(1, () -> rank.dispatch(LowLatencyFormat.BF16));
                    assertThat(failure.phase()).isEqualTo("low-latency dispatch.rows");
                    Misbehaviour.requireWaited(failure, TIMEOUT);
                });
    }

    /**
     * A rank stops within its header, of which one part of two has come: the other is not waited
     * for longer than for a rank that does not begin, and for rows.
     */
    @Cases({"1, 2", "1, 3", "2, 2"})
    void withinAHeader(int nodes, int ranksPerNode) {
        runWithoutRank1(
                nodes,
                ranksPerNode,
                HEADER_PART,
                builder -> builder.timeout(TIMEOUT).startTimeout(TIMEOUT),
                rank -> {
                    beginDispatchFor(rank.context(), 1, HEADER_PART);
                    Misbehaviour.requirePeer(1, () -> rank.dispatch(LowLatencyFormat.BF16));
                });
    }

    /**
     * With masks, a rank stops that has begun the call at rank 0 alone. That gives it up after the
     * time-out, and waits for the others in the next call. They do not wait for the lost one until
     * the start time-out: rank 0 would give them up.
     */
    @Cases({"1, 3", "2, 2"})
    void begunAtOneRankAlone(int nodes, int ranksPerNode) {
        runWithoutRank1(
                nodes,
                ranksPerNode,
                builder -> builder.timeout(TIMEOUT).startTimeout(LONG).maskTimedOutRanks(true),
                rank -> {
                    if (rank.context().rank() == 0) {
                        beginDispatchFor(rank.context(), 1);
                    }
                    rank.call(rank.plan(LowLatencyFormat.BF16).build());
                    rank.call(rank.plan(LowLatencyFormat.BF16).build());
                    requireMaskOf1(rank.context());
                });
    }

    /**
     * With masks, one rank does not come, and another begins its wait late. It gives up the lost
     * one later than the others do, and no later than that: these wait for it in the next call.
     */
    @Cases({"1, 3", "2, 2"})
    void oneWaitsLaterThanTheOthers(int nodes, int ranksPerNode) {
        runWithoutRank1(
                nodes,
                ranksPerNode,
                builder ->
                        builder.timeout(TIMEOUT.multipliedBy(2))
                                .startTimeout(TIMEOUT)
                                .maskTimedOutRanks(true),
                rank -> {
                    LowLatencyDispatchPlan plan =
                            rank.plan(LowLatencyFormat.BF16).receiveHook(true).build();
                    LowLatencyDispatchResult first =
                            rank.context().buffer().lowLatencyDispatch(plan);
                    if (rank.context().rank() == 0) {
                        Misbehaviour.pause(TIMEOUT.dividedBy(2));
                    }
                    first.receiveHook().run();
                    rank.call(rank.plan(LowLatencyFormat.BF16).build());
                    requireMaskOf1(rank.context());
                });
    }

    /** After two exchanges of low latency by all, rank 1 makes no more calls. */
    private void runWithoutRank1(
            int nodes,
            int ranksPerNode,
            Consumer<Buffer.Builder> waits,
            Consumer<LowLatencyRank> others) {
        runWithoutRank1(nodes, ranksPerNode, 2, waits, others);
    }

    private void runWithoutRank1(
            int nodes,
            int ranksPerNode,
            int expertsPerRank,
            Consumer<Buffer.Builder> waits,
            Consumer<LowLatencyRank> others) {
        int numExperts = expertsPerRank * nodes * ranksPerNode;
        LowLatencyShape shape = new LowLatencyShape(nodes, ranksPerNode, 6, 128, 4, numExperts);
        Ranks.run(
                backend,
                Ranks.topology(nodes, ranksPerNode),
                builder -> waits.accept(builder.lowLatency(shape.limits())),
                context -> {
                    LowLatencyRank rank = shape.rank(context, 61);
                    patientRoundTrip(rank);
                    patientRoundTrip(rank);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != 1) {
                        others.accept(rank);
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                });
    }

    /** With longer time-outs: nobody stops yet, and a busy machine may take its time. */
    private static void patientRoundTrip(LowLatencyRank rank) {
        LowLatencyDispatchPlan plan =
                rank.plan(LowLatencyFormat.BF16).timeout(Ranks.TIMEOUT).build();
        rank.combine(rank.home(rank.dispatch(plan).handle()).timeout(Ranks.TIMEOUT));
    }

    private static void requireMaskOf1(RankContext context) {
        int[] masks = new int[context.topology().numRanks()];
        masks[1] = 1;
        assertThat(context.buffer().queryMask()).isEqualTo(masks);
    }

    private static void beginDispatchFor(RankContext context, int silent) {
        beginDispatchFor(context, silent, Integer.MAX_VALUE);
    }

    private static void beginDispatchFor(RankContext context, int silent, int mostWords) {
        LowLatencyLayout layout =
                LowLatencyLayout.of(context.buffer().options().lowLatency(), context.topology());
        int epoch = CallEpoch.of(3);
        int format = DispatchWord.FORMAT.value();
        boolean gpu = context.backend().kind() == Device.Kind.CUDA;
        long first = layout.word(Kind.DISPATCH, epoch & 1, silent, gpu ? 0 : format);
        int numWords = (int) (layout.headers(Kind.DISPATCH).recordBytes() / Long.BYTES);
        count(context, first, gpu ? Math.min(numWords, mostWords) : 1, true, epoch);
    }
}
