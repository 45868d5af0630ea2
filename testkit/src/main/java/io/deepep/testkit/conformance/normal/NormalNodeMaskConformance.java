package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Stream;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks of several nodes that are masked: forwarders, several of a node, whole nodes. */
@BackendSuite
@BesideOthers
public record NormalNodeMaskConformance(TestBackend backend) implements NormalSuite {
    private static final int ROUNDS = 2;

    /** A masked rank waits until the others have made all their calls. */
    static final Duration PATIENCE = Duration.ofSeconds(50);

    private static NormalShape shape(int nodes, int ranksPerNode) {
        return NormalShape.small(Ranks.topology(nodes, ranksPerNode));
    }

    /** Options of groups whose ranks are masked by hand. */
    static void withMasks(TestBackend backend, Buffer.Builder builder) {
        builder.timeout(PATIENCE).network(backend.networkWithMasks());
    }

    private static Set<Integer> ranks(String list) {
        return Arrays.stream(list.split("\\+")).map(Integer::valueOf).collect(Collectors.toSet());
    }

    /** Tokens whose forwarder is masked take another way, and get to all ranks that are left. */
    @Cases({
        "2, 2, 1",
        "2, 2, 2",
        "2, 4, 5",
        "2, 4, 0+6",
        "2, 4, 4+5",
        "3, 2, 3",
        "3, 2, 0+5",
        "3, 2, 1+2+4",
        "4, 2, 2",
        "2, 1, 1",
        "2, 2, 2+3",
        "2, 4, 0+1+2+3",
        "3, 2, 2+3"
    })
    public void byHand(int nodes, int ranksPerNode, String masked) {
        NormalMaskConformance.byHand(
                backend,
                shape(nodes, ranksPerNode),
                ranks(masked),
                ROUNDS,
                builder -> withMasks(backend, builder));
    }

    /** One after the other goes, and all return. */
    @Cases({"2, 4, 5", "3, 2, 3"})
    public void moreAndMore(int nodes, int ranksPerNode, int first) {
        NormalShape shape = shape(nodes, ranksPerNode);
        NormalWorld whole = shape.world();
        NormalWorld one = whole.without(Set.of(first));
        NormalWorld two = whole.without(Set.of(first, 0));
        shape.run(
                backend,
                builder -> withMasks(backend, builder),
                context -> {
                    Buffer buffer = context.buffer();
                    int rank = context.rank();
                    if (rank != first) {
                        buffer.updateMask(first, true);
                        NormalMaskConformance.calls(new NormalRank(context, one));
                    }
                    if (rank != first && rank != 0) {
                        buffer.updateMask(0, true);
                        NormalMaskConformance.calls(new NormalRank(context, two));
                    }
                    NormalMaskConformance.comeBack(context, whole);
                });
    }

    /**
     * A node of three has one spare cell in each rank. With two of them masked, the third takes the
     * place of the first for the first rank elsewhere; selections that the others make there are
     * absent.
     */
    @Cases("3, 3")
    public void noCellToSpare() {
        NormalShape shape = shape(3, 3);
        NormalWorld whole = shape.world();
        Set<Integer> absent = Set.of(3, 4);
        Set<Integer> cutOff = Set.of(1, 6, 7); // their forwarders were 4, 3 and 4
        NormalWorld rest =
                whole.without(
                        (source, rank) ->
                                absent.contains(source)
                                        || absent.contains(rank)
                                        || (cutOff.contains(source) && rank == 5));
        shape.run(
                backend,
                builder -> withMasks(backend, builder),
                context -> NormalMaskConformance.goOnWithout(context, absent, ROUNDS, rest, whole));
    }

    /** Options of groups in which the masks of one rank become those of the others. */
    private void adoptMasks(Buffer.Builder builder) {
        builder.timeout(Duration.ofSeconds(2))
                .maskTimedOutRanks(true)
                .network(backend.networkWithMasks());
    }

    /**
     * A rank stopped after a call of which one other rank alone saw no end: that one has masked it.
     * The others hear that, are refused with it, and mask the rank too; nobody else is given up.
     */
    @Cases({"2, 2", "3, 2"})
    public void maskedByOneRank(int nodes, int ranksPerNode) {
        NormalShape shape = shape(nodes, ranksPerNode);
        NormalWorld whole = shape.world();
        int stopped = shape.topology().numRanks() - 1;
        NormalWorld rest = whole.without(stopped);
        shape.run(
                backend,
                this::adoptMasks,
                context -> {
                    NormalMaskConformance.calls(new NormalRank(context, whole));
                    context.communicator().barrier(Ranks.TIMEOUT);
                    Buffer buffer = context.buffer();
                    if (context.rank() == stopped - 1) {
                        buffer.updateMask(stopped, true);
                    }
                    if (context.rank() != stopped) {
                        NormalRank rank = new NormalRank(context, whole);
                        Misbehaviour.requireMismatch(
                                () -> buffer.dispatch(rank.plan().build()), "masked ranks");
                        NormalMaskConformance.requireMasked(context, Set.of(stopped));
                        NormalMaskConformance.calls(new NormalRank(context, rest));
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                });
    }

    static List<EpTopology> groupsOnStreams(TestBackend backend) {
        return backend.kind() == Device.Kind.HOST || !Ranks.fit(backend, Ranks.topology(2, 2))
                ? List.of()
                : List.of(Ranks.topology(2, 2));
    }

    /** The same where calls stay on a stream of a GPU, and nobody asks for their end. */
    @Cases
    @MethodSource("groupsOnStreams")
    public void maskedByOneRankOnAStream(EpTopology topology) {
        NormalShape shape = NormalShape.small(topology);
        NormalWorld whole = shape.world();
        int stopped = shape.topology().numRanks() - 1;
        NormalWorld rest = whole.without(stopped);
        shape.run(
                backend,
                this::adoptMasks,
                context -> {
                    Buffer buffer = context.buffer();
                    Stream stream = buffer.communicationStream();
                    int rows = shape.tokens() * shape.topology().numRanks();
                    NormalRank rank = new NormalRank(context, whole);
                    DispatchPlan plan = rank.plan().numWorstTokens(rows).build();
                    rank.call(plan);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() == 0) {
                        buffer.updateMask(stopped, true);
                    }
                    if (context.rank() != stopped) {
                        // The first is refused; the second one hears of it.
                        for (int i = 0; i < 2; i++) {
                            buffer.dispatch(plan, CallOptions.sync().on(stream));
                            stream.synchronize();
                        }
                        NormalMaskConformance.requireMasked(context, Set.of(stopped));
                        NormalMaskConformance.calls(new NormalRank(context, rest));
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                });
    }

    /** What went by other forwarders is refused on all ranks. */
    @Cases("2, 2")
    public void handlesOfOtherMasks() {
        handlesOfOtherMasks(backend, shape(2, 2), 3);
    }

    static void handlesOfOtherMasks(TestBackend backend, NormalShape shape, int absent) {
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        shape.run(
                backend,
                builder -> withMasks(backend, builder),
                context -> {
                    NormalRank rank = new NormalRank(context, whole);
                    DispatchHandle old = rank.dispatch().handle();
                    Buffer buffer = context.buffer();
                    if (context.rank() != absent) {
                        buffer.updateMask(absent, true);
                        String why = "masked or unmasked since the dispatch";
                        CombinePlan combine = CombinePlan.builder(rank.outputs(), old).build();
                        Misbehaviour.requireRefused(
                                RoutingException.class, why, () -> buffer.combine(combine));
                        DispatchPlan cached = rank.bare().cached(old).build();
                        Misbehaviour.requireRefused(
                                RoutingException.class, why, () -> buffer.dispatch(cached));
                        NormalMaskConformance.calls(new NormalRank(context, rest));
                    }
                    NormalMaskConformance.comeBack(context, whole);
                });
    }

    /** Ranks that stop before a call are named by all others, masked, left out and taken back. */
    @Cases({"2, 2, 2", "2, 2, 0", "2, 4, 7", "3, 2, 1", "2, 2, 2+3", "3, 2, 2+5", "2, 4, 1+6"})
    public void byTimeout(int nodes, int ranksPerNode, String stopped) {
        lose(shape(nodes, ranksPerNode), ranks(stopped), _ -> {}, NormalRank::dispatch);
    }

    /** A rank stops when it has dispatched: the others combine in vain. */
    @Cases({"2, 2, 2", "3, 2, 1"})
    public void inCombine(int nodes, int ranksPerNode, int stopped) {
        lose(
                shape(nodes, ranksPerNode),
                Set.of(stopped),
                NormalRank::dispatch,
                NormalRank::roundTrip);
    }

    /** What a rank does. */
    private interface Work {
        void of(NormalRank rank);
    }

    private void lose(NormalShape shape, Set<Integer> stopped, Work last, Work lost) {
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(stopped);
        shape.run(
                backend,
                builder -> builder.timeout(Duration.ofSeconds(2)).maskTimedOutRanks(true),
                context -> {
                    NormalRank rank = new NormalRank(context, whole);
                    NormalMaskConformance.calls(rank);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (stopped.contains(context.rank())) {
                        last.of(rank);
                        // The others call until they have masked all that stopped.
                        boolean all = false;
                        while (!all) {
                            all = agree(context, true);
                        }
                    } else {
                        fail(context, () -> lost.of(rank), stopped);
                        NormalRank survivor = new NormalRank(context, rest);
                        for (int i = 0; i < ROUNDS; i++) {
                            NormalMaskConformance.calls(survivor);
                        }
                    }
                    context.communicator().barrier(PATIENCE);
                    NormalMaskConformance.comeBack(context, whole);
                });
    }

    /**
     * Calls until all that stopped are masked. Of several, ranks may mask different ones first:
     * then the next call is refused on all of them, and they learn of each other's. A kernel ends
     * with the first that somebody gave up; on the host, all that stop together cost one time-out.
     */
    private static void fail(RankContext context, Runnable call, Set<Integer> stopped) {
        int timeouts = 0;
        for (boolean all = false; !all; all = agree(context, knows(context, stopped))) {
            try {
                call.run();
                throw new AssertionError("a call of rank " + context.rank() + " worked");
            } catch (DeepEpTimeoutException late) {
                timeouts++;
                assertThat(stopped).as(late.getMessage()).contains(late.peer());
            } catch (RankMismatchException differ) {
                assertThat(differ).hasMessageContaining("masked ranks");
            }
        }
        NormalMaskConformance.requireMasked(context, stopped);
        boolean host = context.buffer().options().device().isHost();
        assertThat(timeouts).as("time-outs").isBetween(1, host ? 1 : stopped.size());
    }

    private static boolean knows(RankContext context, Set<Integer> stopped) {
        int[] mask = context.buffer().queryMask();
        return stopped.stream().allMatch(rank -> mask[rank] == 1);
    }

    /** Whether all say yes; collective of all ranks, over their communicator. */
    private static boolean agree(RankContext context, boolean yes) {
        byte[] answer = {(byte) (yes ? 1 : 0)};
        return context.communicator().allGather(answer, PATIENCE).stream()
                .allMatch(other -> other[0] == 1);
    }

    /** Slow is not dead: what a rank does between calls takes up to the time-out. */
    @Cases("2, 2")
    public void slowIsNotDead() {
        NormalMaskConformance.slowIsNotDead(backend, shape(2, 2));
    }
}
