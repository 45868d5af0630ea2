package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Device;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Stream;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** Ranks of several nodes that are masked: forwarders, several of a node, whole nodes. */
@BackendSuite
@BesideOthers
public record NormalNodeMaskConformance(TestBackend backend) {
    private NormalLoss loss(int nodes, int ranksPerNode, Integer... absent) {
        return NormalLoss.of(backend, nodes, ranksPerNode, Set.of(absent));
    }

    private NormalLoss loss(int nodes, int ranksPerNode, String absent) {
        return loss(
                nodes,
                ranksPerNode,
                Arrays.stream(absent.split("\\+")).map(Integer::valueOf).toArray(Integer[]::new));
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
        loss(nodes, ranksPerNode, masked).byHand();
    }

    /** One after the other goes, and all return. */
    @Cases({"2, 4, 5", "3, 2, 3"})
    public void moreAndMore(int nodes, int ranksPerNode, int first) {
        NormalLoss one = loss(nodes, ranksPerNode, first);
        NormalLoss two = loss(nodes, ranksPerNode, first, 0);
        one.run(
                one::withMasks,
                context -> {
                    if (!one.isAbsent(context)) {
                        one.mask(context);
                        one.callsOfTheRest(context);
                    }
                    if (!two.isAbsent(context)) {
                        two.mask(context);
                        two.callsOfTheRest(context);
                    }
                    one.comeBack(context);
                });
    }

    /**
     * A node of three has one spare cell in each rank. With two of them masked, the third takes the
     * place of the first for the first rank elsewhere; selections that the others make there are
     * absent.
     */
    @Cases("3, 3")
    public void noCellToSpare() {
        Set<Integer> cutOff = Set.of(1, 6, 7); // their forwarders were 4, 3 and 4
        NormalLoss loss = loss(3, 3, 3, 4);
        loss.run(
                loss::withMasks,
                context -> {
                    if (!loss.isAbsent(context)) {
                        loss.mask(context);
                        NormalWorld rest = context.shared("rest", _ -> without(loss, cutOff, 5));
                        NormalLoss.calls(new NormalRank(context, rest));
                        NormalLoss.calls(new NormalRank(context, rest));
                    }
                    loss.comeBack(context);
                });
    }

    /** What is left if, besides, tokens of some ranks do not get to {@code rank}. */
    private static NormalWorld without(NormalLoss loss, Set<Integer> cutOff, int rank) {
        return loss.shape()
                .world()
                .without(
                        (source, to) ->
                                loss.absent().contains(source)
                                        || loss.absent().contains(to)
                                        || (cutOff.contains(source) && to == rank));
    }

    /**
     * A rank stopped after a call of which one other rank alone saw no end: that one has masked it.
     * The others hear that, are refused with it, and mask the rank too; nobody else is given up.
     */
    @Cases({"2, 2", "3, 2"})
    public void maskedByOneRank(int nodes, int ranksPerNode) {
        int stopped = nodes * ranksPerNode - 1;
        NormalLoss loss = loss(nodes, ranksPerNode, stopped);
        loss.run(
                loss::adoptMasks,
                context -> {
                    loss.callsOfAll(context);
                    context.meet();
                    if (context.rank() == stopped - 1) {
                        context.buffer().updateMask(stopped, true);
                    }
                    if (!loss.isAbsent(context)) {
                        NormalRank rank = loss.whole(context);
                        Misbehaviour.requireMismatch(
                                () -> rank.call(rank.plan().build()), "masked ranks");
                        context.requireMasked(Set.of(stopped));
                        loss.callsOfTheRest(context);
                    }
                    context.meet();
                });
    }

    static List<EpTopology> groupsOnStreams(TestBackend backend) {
        return backend.kind() == Device.Kind.HOST || !Ranks.fit(backend, Ranks.topology(2, 2))
                ? List.of()
                : List.of(Ranks.topology(2, 2));
    }

    /** The same where calls stay on a stream of a GPU, and nobody asks for their end. */
    @Cases(from = "groupsOnStreams")
    public void maskedByOneRankOnAStream(EpTopology topology) {
        int stopped = topology.numRanks() - 1;
        NormalShape shape = NormalShape.small(topology);
        NormalLoss loss = new NormalLoss(backend, shape, Set.of(stopped));
        loss.run(
                loss::adoptMasks,
                context -> {
                    Buffer buffer = context.buffer();
                    Stream stream = buffer.communicationStream();
                    int rows = shape.tokens() * topology.numRanks();
                    NormalRank rank = loss.whole(context);
                    DispatchPlan plan = rank.plan().numWorstTokens(rows).build();
                    rank.call(plan);
                    context.meet();
                    if (context.rank() == 0) {
                        buffer.updateMask(stopped, true);
                    }
                    if (!loss.isAbsent(context)) {
                        // The first is refused; the second one hears of it.
                        for (int i = 0; i < 2; i++) {
                            buffer.dispatch(plan, CallOptions.sync().on(stream));
                            stream.synchronize();
                        }
                        context.requireMasked(Set.of(stopped));
                        loss.callsOfTheRest(context);
                    }
                    context.meet();
                });
    }

    /** What went by other forwarders is refused on all ranks. */
    @Cases("2, 2")
    public void handlesOfOtherMasks() {
        loss(2, 2, 3).handlesOfOtherMasks();
    }

    /** Ranks that stop before a call are named by all others, masked, left out and taken back. */
    @Cases({"2, 2, 2", "2, 2, 0", "2, 4, 7", "3, 2, 1", "2, 2, 2+3", "3, 2, 2+5", "2, 4, 1+6"})
    public void byTimeout(int nodes, int ranksPerNode, String stopped) {
        lose(loss(nodes, ranksPerNode, stopped), _ -> {}, NormalRank::dispatch);
    }

    /** A rank stops when it has dispatched: the others combine in vain. */
    @Cases({"2, 2, 2", "3, 2, 1"})
    public void inCombine(int nodes, int ranksPerNode, int stopped) {
        lose(loss(nodes, ranksPerNode, stopped), NormalRank::dispatch, NormalRank::roundTrip);
    }

    private static void lose(
            NormalLoss loss, Consumer<NormalRank> last, Consumer<NormalRank> lost) {
        loss.run(
                NormalLoss::maskTimedOut,
                context -> {
                    NormalRank rank = loss.whole(context);
                    NormalLoss.calls(rank);
                    context.meet();
                    if (loss.isAbsent(context)) {
                        last.accept(rank);
                        // The others call until they have masked all that stopped.
                        boolean all = false;
                        while (!all) {
                            all = context.everywhere(true, NormalLoss.PATIENCE);
                        }
                    } else {
                        fail(context, () -> lost.accept(rank), loss.absent());
                        loss.callsOfTheRest(context);
                    }
                    context.communicator().barrier(NormalLoss.PATIENCE);
                    loss.comeBack(context);
                });
    }

    /**
     * Calls until all that stopped are masked. Of several, ranks may mask different ones first:
     * then the next call is refused on all of them, and they learn of each other's. A kernel ends
     * with the first that somebody gave up; on the host, all that stop together cost one time-out.
     */
    private static void fail(RankContext context, Runnable call, Set<Integer> stopped) {
        int timeouts = 0;
        for (boolean all = false;
                !all;
                all = context.everywhere(knows(context, stopped), NormalLoss.PATIENCE)) {
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
        context.requireMasked(stopped);
        boolean host = context.buffer().options().device().isHost();
        assertThat(timeouts).as("time-outs").isBetween(1, host ? 1 : stopped.size());
    }

    private static boolean knows(RankContext context, Set<Integer> stopped) {
        int[] mask = context.buffer().queryMask();
        return stopped.stream().allMatch(rank -> mask[rank] == 1);
    }

    /** Slow is not dead: what a rank does between calls takes up to the time-out. */
    @Cases("2, 2")
    public void slowIsNotDead() {
        loss(2, 2).slowIsNotDead();
    }
}
