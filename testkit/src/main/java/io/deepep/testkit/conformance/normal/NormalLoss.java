package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;

/**
 * A group that goes on without some ranks and takes them back, and what all do on the way.
 *
 * @param shape of what the ranks exchange
 * @param absent the ranks that are lost
 */
record NormalLoss(TestBackend backend, NormalShape shape, Set<Integer> absent) {
    /** A masked rank waits until the others have made all their calls. */
    static final Duration PATIENCE = Duration.ofSeconds(50);

    private static final int ROUNDS = 2;

    static NormalLoss of(TestBackend backend, int nodes, int ranksPerNode, Set<Integer> absent) {
        return new NormalLoss(
                backend, NormalShape.small(Ranks.topology(nodes, ranksPerNode)), absent);
    }

    /** Every kind of call, verified. */
    static void calls(NormalRank rank) {
        DispatchHandle handle = rank.newHandle();
        rank.combine(handle);
        rank.combineFp8(handle);
        rank.combineFp8Rows(handle);
        rank.combineWithWeights(handle, CombineFormat.BF16);
        DispatchPlan cached = rank.bare().cached(handle).build();
        rank.combine(rank.context().buffer().dispatch(cached).handle());
        rank.expecting(rank.check().expanded(1)).roundTrip();
    }

    /** Options of groups whose ranks are masked by hand. */
    void withMasks(Buffer.Builder builder) {
        builder.timeout(PATIENCE).network(backend.networkWithMasks());
    }

    /** Options of groups that mask ranks that do not come. */
    static void maskTimedOut(Buffer.Builder builder) {
        builder.timeout(Duration.ofSeconds(2)).maskTimedOutRanks(true);
    }

    /** The same, where the masks of one rank become those of the others. */
    void adoptMasks(Buffer.Builder builder) {
        maskTimedOut(builder);
        builder.network(backend.networkWithMasks());
    }

    void run(Consumer<Buffer.Builder> options, Ranks.Body body) {
        shape.run(backend, options, body);
    }

    boolean isAbsent(RankContext context) {
        return absent.contains(context.rank());
    }

    /** The rank's share of an exchange of all ranks. */
    NormalRank whole(RankContext context) {
        return shape.rank(context);
    }

    void callsOfAll(RankContext context) {
        calls(whole(context));
    }

    void callsOfTheRest(RankContext context) {
        NormalRank survivor = shape.rest(context, absent);
        for (int i = 0; i < ROUNDS; i++) {
            calls(survivor);
        }
    }

    void comeBack(RankContext context) {
        context.buffer().rejoin();
        context.requireMasked(Set.of());
        callsOfAll(context);
    }

    /** Masks the ranks that are lost. */
    void mask(RankContext context) {
        context.mask(absent);
    }

    /** The ranks that are left go on, if this is one of them; then all are back. */
    void goOn(RankContext context) {
        if (!isAbsent(context)) {
            mask(context);
            callsOfTheRest(context);
        }
        comeBack(context);
    }

    /** The others go on without ranks that they mask; then all are back. */
    void byHand() {
        run(
                this::withMasks,
                context -> {
                    callsOfAll(context);
                    goOn(context);
                });
    }

    /** What was dispatched to other ranks than take part now is refused on all of them. */
    void handlesOfOtherMasks() {
        run(
                this::withMasks,
                context -> {
                    NormalRank rank = whole(context);
                    DispatchHandle old = rank.newHandle();
                    if (!isAbsent(context)) {
                        mask(context);
                        String why = "masked or unmasked since the dispatch";
                        Misbehaviour.requireRefused(
                                RoutingException.class, why, () -> rank.combine(old));
                        DispatchPlan cached = rank.bare().cached(old).build();
                        Misbehaviour.requireRefused(
                                RoutingException.class, why, () -> rank.call(cached));
                        callsOfTheRest(context);
                    }
                    comeBack(context);
                });
    }

    /** A rank that stops is named, masked, left out and taken back. */
    void byTimeout() {
        int stopped = absent.iterator().next();
        run(
                NormalLoss::maskTimedOut,
                context -> {
                    callsOfAll(context);
                    context.meet();
                    if (!isAbsent(context)) {
                        Misbehaviour.requirePeer(stopped, () -> callsOfTheRest(context));
                        context.requireMasked(absent);
                        callsOfTheRest(context);
                    }
                    context.communicator().barrier(PATIENCE);
                    comeBack(context);
                });
    }

    /** Each rank pauses before a call for less than the time-out, which changes nothing. */
    void slowIsNotDead() {
        run(
                builder -> builder.maskTimedOutRanks(true),
                context -> {
                    NormalRank rank = whole(context);
                    for (int slow = 0; slow < shape.topology().numRanks(); slow++) {
                        if (context.rank() == slow) {
                            Misbehaviour.pause(Misbehaviour.SHORT);
                        }
                        calls(rank);
                    }
                    context.requireMasked(Set.of());
                });
    }

    /** The group and the ranks that are lost, for names of cases. */
    @Override
    public String toString() {
        return "%s x %s without %s"
                .formatted(shape.nodes(), shape.ranksPerNode(), absent.stream().sorted().toList());
    }
}
