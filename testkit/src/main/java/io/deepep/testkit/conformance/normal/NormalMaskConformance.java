package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Stream;

/** Ranks that are masked, by hand or because they did not come, and that come back. */
@BackendSuite
@BesideOthers
public record NormalMaskConformance(TestBackend backend) {
    private NormalLoss loss(int numRanks, Integer... absent) {
        return NormalLoss.of(backend, 1, numRanks, Set.of(absent));
    }

    /**
     * A masked rank is neither sent to nor waited for, also the first; back again, it takes part.
     */
    @Cases({"1, 4, 3", "1, 4, 0", "1, 3, 1", "1, 8, 5", "1, 2, 0"})
    public void byHand(int nodes, int numRanks, int absent) {
        loss(numRanks, absent).byHand();
    }

    @Cases("1, 4")
    public void handlesOfOtherMasks() {
        loss(4, 2).handlesOfOtherMasks();
    }

    static Stream<NormalShape> groupsOverNetworks(TestBackend backend) {
        return Stream.of(NormalShape.small(Ranks.topology(2, 2)))
                .filter(group -> Ranks.fit(backend, group.topology()) && refuses(backend));
    }

    private static boolean refuses(TestBackend backend) {
        return !backend.networkWithMasks().equals(backend.network());
    }

    /** Where a network connects the nodes without masks, nobody is left out, and calls go on. */
    @Cases(from = "groupsOverNetworks")
    public void refusedOverNetworks(NormalShape shape, RankContext context) {
        int other = (context.rank() + 1) % shape.topology().numRanks();
        Misbehaviour.requireRefused(
                UnsupportedOperationException.class,
                "if a network connects the nodes",
                () -> context.buffer().updateMask(other, true));
        context.requireMasked(Set.of());
        NormalLoss.calls(shape.rank(context));
    }

    /** Of ranks that leave out different ones, those that hear of each other learn it. */
    @Cases("1, 4")
    public void differentMasks() {
        NormalLoss nobody = loss(4);
        nobody.run(
                _ -> {},
                context -> {
                    nobody.callsOfAll(context);
                    Buffer buffer = context.buffer();
                    // Rank 3 comes, but 0 does not listen to it, nor it to 0.
                    if (context.rank() == 0 || context.rank() == 3) {
                        buffer.updateMask(3 - context.rank(), true);
                    }
                    NormalRank rank = nobody.whole(context);
                    Misbehaviour.requireMismatch(
                            () -> rank.call(rank.plan().build()), "masked ranks");
                    buffer.rejoin();
                    nobody.callsOfAll(context);
                });
    }

    @Cases({"1, 4, 2", "1, 3, 0"})
    public void byTimeout(int nodes, int numRanks, int absent) {
        loss(numRanks, absent).byTimeout();
    }

    /** A rank fails after a round of calls: what the others do meanwhile, which mask the lost. */
    private static void whileFailed(NormalLoss loss, int failing, Ranks.Body others) {
        loss.run(
                builder -> builder.timeout(Duration.ofHours(1)).maskTimedOutRanks(true),
                all -> {
                    loss.callsOfAll(all);
                    Misbehaviour.whileGone(all, failing, Misbehaviour::fail, others);
                });
    }

    /** A rank that fails is masked at once, and known to be gone no more. */
    @Cases(value = "1, 4", ofThreads = true)
    public void failed() {
        int failing = 1;
        NormalLoss loss = loss(4, failing);
        whileFailed(
                loss,
                failing,
                context -> {
                    Misbehaviour.requireRefused(
                            DeepEpTimeoutException.class,
                            "rank 1 failed",
                            () -> loss.callsOfTheRest(context));
                    loss.callsOfTheRest(context);
                });
    }

    /** Once that rank is masked, one that failed because of it is named and masked itself. */
    @Cases(value = "1, 4", ofThreads = true)
    public void failedBecauseOfAnother() {
        int failing = 3;
        int victim = 2;
        NormalLoss loss = loss(4, failing, victim);
        whileFailed(
                loss,
                failing,
                context -> {
                    DeepEpTimeoutException first =
                            Misbehaviour.requirePeer(failing, () -> loss.callsOfAll(context));
                    if (context.rank() == victim) {
                        context.communicator().fail(first);
                        return;
                    }
                    Misbehaviour.requirePeer(victim, () -> loss.callsOfAll(context));
                    context.requireMasked(loss.absent());
                    loss.callsOfTheRest(context);
                });
    }

    @Cases("1, 4")
    public void slowIsNotDead() {
        loss(4).slowIsNotDead();
    }
}
