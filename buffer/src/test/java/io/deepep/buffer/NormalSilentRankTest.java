package io.deepep.buffer;

import static io.deepep.buffer.ForgedWords.count;
import static io.deepep.buffer.ForgedWords.load;
import static io.deepep.buffer.ForgedWords.nvlLayout;
import static io.deepep.buffer.ForgedWords.rdmaLayout;
import static io.deepep.buffer.ForgedWords.store;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.normal.DoneWord;
import io.deepep.normal.HeaderWord;
import io.deepep.spi.FaultCode;
import io.deepep.spi.Word;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;

/**
 * A rank begins a call and then does nothing more, as if it were killed there: all others name it
 * after the time-out, however long they would wait for ranks to begin. Also those name it that wait
 * for others which wait for it.
 *
 * <p>The rank does not make the call at all. Its header of the call before the last of the same
 * kind lies at its peers still, as headers alternate between two places, and these have it count
 * for this call.
 */
@BackendSuite
@BesideOthers
record NormalSilentRankTest(TestBackend backend) {
    /** Of the dispatch and three combines; the headers of the first and the third share a place. */
    private static final int SILENT_EPOCH = Word.FIRST_EPOCH + 3;

    /** Rings with far fewer slots than a rank has tokens. */
    private static final Config SHORT_RINGS = new Config(4, 1, 2);

    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    /** A wait that lasts so long never ends in a test. */
    private static final Duration LONG = Duration.ofHours(1);

    private interface ThirdCombine {
        void of(NormalRank rank, DispatchHandle handle);
    }

    private void run(int nodes, int ranksPerNode, Duration startTimeout, ThirdCombine third) {
        run(nodes, ranksPerNode, builder -> builder.startTimeout(startTimeout), third);
    }

    private void run(
            int nodes, int ranksPerNode, Consumer<Buffer.Builder> waits, ThirdCombine third) {
        int numRanks = nodes * ranksPerNode;
        run(nodes, ranksPerNode, RoutingSpec.of(numRanks, 96, 4 * numRanks, 4), waits, third);
    }

    private void run(
            int nodes,
            int ranksPerNode,
            RoutingSpec spec,
            Consumer<Buffer.Builder> waits,
            ThirdCombine third) {
        NormalWorld world = NormalWorld.of(spec, 128, DType.BF16);
        Ranks.run(
                backend,
                Ranks.topology(nodes, ranksPerNode),
                builder ->
                        waits.accept(
                                builder.normal(world.limits())
                                        .dispatchConfig(SHORT_RINGS)
                                        .combineConfig(SHORT_RINGS)
                                        .timeout(TIMEOUT)),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchHandle handle = dispatchAndCombineTwice(rank);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    third.of(rank, handle);
                    context.communicator().barrier(Ranks.TIMEOUT);
                });
    }

    /** With longer time-outs: nobody stops yet, and a busy machine may take its time. */
    private static DispatchHandle dispatchAndCombineTwice(NormalRank rank) {
        DispatchHandle handle = rank.dispatch(rank.plan().timeout(Ranks.TIMEOUT)).handle();
        for (int i = 0; i < 2; i++) {
            rank.combine(rank.home(handle).timeout(Ranks.TIMEOUT));
        }
        return handle;
    }

    private static DeepEpTimeoutException failure(NormalRank rank, DispatchHandle handle) {
        DeepEpTimeoutException failure =
                catchThrowableOfType(DeepEpTimeoutException.class, () -> rank.combine(handle));
        assertThat(failure).as("a timeout on rank %d", rank.context().rank()).isNotNull();
        return failure;
    }

    @Cases({"2, 1", "3, 1", "4, 1", "5, 1"})
    void inACombine(int nodes, int ranksPerNode) {
        run(nodes, ranksPerNode, LONG, (rank, handle) -> stopAfterHeaders(rank, handle, false));
    }

    /** What the rank said before it stopped, that it waits for others, helps it no longer. */
    @Cases({"2, 1", "3, 1"})
    void afterItWaitedForOthers(int nodes, int ranksPerNode) {
        run(nodes, ranksPerNode, LONG, (rank, handle) -> stopAfterHeaders(rank, handle, true));
    }

    private static void stopAfterHeaders(NormalRank rank, DispatchHandle handle, boolean waited) {
        RankContext context = rank.context();
        int culprit = context.topology().numRanks() - 1;
        if (context.rank() == culprit) {
            return;
        }
        openFor(context, culprit);
        if (waited) {
            store(context, waitOf(context, culprit), true, Word.of(SILENT_EPOCH, 7));
        }
        DeepEpTimeoutException failure = failure(rank, handle);
        assertThat(failure.phase()).contains("combine.rows");
        assertThat(failure.peer()).as(failure.getMessage()).isEqualTo(culprit);
        Misbehaviour.requireWaited(failure, TIMEOUT);
    }

    /** Here the rank seems to have opened the call. */
    private static void openFor(RankContext context, int silent) {
        long flag = rdmaLayout(context).headerFlags().at(silent, SILENT_EPOCH & 1);
        store(context, flag, true, Word.of(SILENT_EPOCH, 0));
    }

    /**
     * One rank knows that all have begun and waits for ranks that still wait for the last one,
     * longer than it would wait for a rank that says nothing.
     */
    @Cases("2, 2")
    void whileOthersWaitForItsHeader(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                LONG,
                (rank, handle) -> {
                    goAheadOf(rank.context(), 0, 3);
                    if (rank.context().rank() == 3) {
                        Misbehaviour.pause(TIMEOUT.multipliedBy(3));
                    }
                    rank.combine(handle);
                });
    }

    /** The same, and the last one never begins: all name it, whomever they waited for. */
    @Cases("2, 2")
    void whileOthersWaitForItsHeaderInVain(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                TIMEOUT.multipliedBy(3),
                (rank, handle) -> {
                    goAheadOf(rank.context(), 0, 3);
                    if (rank.context().rank() != 3) {
                        DeepEpTimeoutException failure = failure(rank, handle);
                        assertThat(failure.peer()).as(failure.getMessage()).isEqualTo(3);
                    }
                });
    }

    /**
     * Two ranks stop. One of the others has their headers: it gives one of them up after the
     * time-out, and goes on to the next call. The last one has neither header. It is told, and from
     * then on waits no longer than that for the second, though the start time-out is not over.
     */
    @Cases("1, 4")
    void besideAnotherThatHasNotBegun(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                builder -> builder.startTimeout(LONG).maskTimedOutRanks(true),
                (rank, handle) -> {
                    RankContext context = rank.context();
                    if (context.rank() < 2) {
                        return;
                    }
                    goAheadOf(context, 2, 0);
                    goAheadOf(context, 2, 1);
                    DeepEpTimeoutException failure = failure(rank, handle);
                    assertThat(failure.peer()).as(failure.getMessage()).isBetween(0, 1);
                    context.buffer().updateMask(0, true);
                    context.buffer().updateMask(1, true);
                    NormalRank left = new NormalRank(context, rank.world().without(Set.of(0, 1)));
                    left.roundTrip();
                });
    }

    /**
     * A rank ends the call and gives up the next one, as somebody has left, before another sees
     * that it ended the first: that one has ended well there too.
     */
    @Cases({"1, 2", "1, 3", "2, 1"})
    void endsAndGivesUpTheNextCallAtOnce(int nodes, int ranksPerNode) {
        int numRanks = nodes * ranksPerNode;
        run(
                nodes,
                ranksPerNode,
                RoutingSpec.of(numRanks, 24, numRanks, 1)
                        .withGate(new Gate.AllToOne(0))
                        .withIdleRanks(1),
                builder -> builder.startTimeout(LONG).maskTimedOutRanks(nodes > 1),
                (rank, handle) -> {
                    RankContext context = rank.context();
                    int ended = numRanks - 1;
                    if (context.rank() == ended) {
                        return;
                    }
                    if (nodes > 1) {
                        openFor(context, ended);
                    } else {
                        goAheadOf(context, context.rank(), ended);
                    }
                    CombinePlan plan = CombinePlan.builder(rank.outputs(), handle).build();
                    CombineResult result = context.buffer().combine(plan, CallOptions.async());
                    Misbehaviour.pause(TIMEOUT.dividedBy(4));
                    giveUpNextCallFor(context, ended);
                    rank.verify(result);
                });
    }

    private static void giveUpNextCallFor(RankContext context, int ended) {
        boolean ofOtherNode = isOfOtherNode(context, ended);
        long words = wordsOf(context, ended);
        int next = Word.epochAfter(SILENT_EPOCH);
        store(context, words + DoneWord.SINCE.offset(), ofOtherNode, next);
        long flag = Word.of(next, FaultCode.PEER_GONE.value());
        store(context, words, ofOtherNode, flag);
    }

    /** A rank stops after it sent its own header, and before it relayed that of its peer. */
    @Cases("2, 2")
    void beforeItRelaysAHeader(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                TIMEOUT,
                (rank, handle) -> {
                    if (rank.context().rank() == 2) {
                        openFor(rank.context(), 0);
                        goAheadOf(rank.context(), 2, 3);
                        DeepEpTimeoutException failure = failure(rank, handle);
                        assertThat(failure.peer()).as(failure.getMessage()).isEqualTo(3);
                    }
                });
    }

    /**
     * A rank waits in the call before still, and says so: ranks that can go on without it do not
     * give it up sooner than others would.
     */
    @Cases({"1, 2", "2, 1", "2, 2"})
    void whileItWaitsInTheCallBefore(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                TIMEOUT,
                (rank, handle) -> {
                    RankContext context = rank.context();
                    if (context.rank() == 0) {
                        Misbehaviour.pause(TIMEOUT.plus(TIMEOUT.dividedBy(2)));
                    } else if (hears(context, 0)) {
                        long word = Word.of(SILENT_EPOCH - 1, 0);
                        store(context, waitOf(context, 0), isOfOtherNode(context, 0), word);
                    }
                    rank.combine(handle);
                });
    }

    /** A rank that has waited may stop before the next call: what it said must not help it then. */
    @Cases({"1, 2", "2, 1", "2, 2"})
    void whatARankSaysOfItsWaitsEndsWithTheCall(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                LONG,
                (rank, handle) -> {
                    RankContext context = rank.context();
                    int late = context.topology().numRanks() - 1;
                    if (context.rank() == late) {
                        Misbehaviour.pause(TIMEOUT.dividedBy(2));
                        for (int peer = 0; peer < late; peer++) {
                            if (hears(context, peer)) {
                                assertThat(Word.epoch(saidBy(context, peer)))
                                        .isEqualTo(SILENT_EPOCH);
                            }
                        }
                    }
                    rank.combine(handle);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    for (int peer = 0; peer <= late; peer++) {
                        if (hears(context, peer)) {
                            requireNotInNextCall(saidBy(context, peer));
                        }
                    }
                });
    }

    /** Otherwise a rank that stopped after one was masked would be waited for twice as long. */
    @Cases({"1, 3", "3, 1"})
    void whatARankSaysOfItsWaitsEndsWithACallThatMasksAnother(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                builder -> builder.startTimeout(TIMEOUT).maskTimedOutRanks(true),
                (rank, handle) -> {
                    RankContext context = rank.context();
                    boolean isSilent = context.rank() == 2;
                    if (!isSilent) {
                        assertThat(failure(rank, handle).peer()).isEqualTo(2);
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (!isSilent) {
                        requireNotInNextCall(saidBy(context, 1 - context.rank()));
                    }
                });
    }

    /** A word counts in its call and in the one after it. */
    private static void requireNotInNextCall(long said) {
        assertThat(Word.epoch(said)).isLessThan(SILENT_EPOCH);
    }

    private static boolean isOfOtherNode(RankContext context, int peer) {
        return context.topology().rdmaRank() != peer / context.topology().numNvlRanks();
    }

    /** Whether {@code peer} says to this rank that it waits: a neighbour does, and a contact. */
    private static boolean hears(RankContext context, int peer) {
        return !isOfOtherNode(context, peer)
                || context.topology().nvlRank() == peer % context.topology().numNvlRanks();
    }

    /** Where a peer says how it left a call, and that it waits: {@link DoneWord}. */
    private static long wordsOf(RankContext context, int peer) {
        return isOfOtherNode(context, peer)
                ? rdmaLayout(context).endings().at(peer)
                : nvlLayout(context).doneFlags().at(peer % context.topology().numNvlRanks());
    }

    private static long waitOf(RankContext context, int peer) {
        return wordsOf(context, peer) + DoneWord.WAITING.offset();
    }

    private static long saidBy(RankContext context, int peer) {
        return load(context, waitOf(context, peer), isOfOtherNode(context, peer));
    }

    /** To rank {@code ahead}, but to no other, {@code late} seems to have opened the call. */
    private static void goAheadOf(RankContext context, int ahead, int late) {
        if (context.rank() == ahead) {
            long header = nvlLayout(context).headers().at(SILENT_EPOCH & 1, late);
            count(context, header, HeaderWord.HEADER_WORDS, false, SILENT_EPOCH);
        }
    }
}
