package io.deepep.testkit.conformance.replacement;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Set;

/**
 * A group some of whose ranks die and are replaced, and what its ranks do: verified calls of both
 * modes.
 */
record ReplacedGroup(TestBackend backend, EpTopology topology, Set<Integer> dead, boolean masks)
        implements RankGroup {
    private static final int MAX_TOKENS = 12;
    private static final int HIDDEN = 256;
    private static final int TOPK = 4;
    private static final int EXPERTS_PER_RANK = 4;
    private static final int ROUNDS = 2;

    /** Whose buffers do not mask ranks that time out. */
    static ReplacedGroup of(TestBackend backend, int nodes, int ranksPerNode, Integer... dead) {
        EpTopology topology = Ranks.topology(nodes, ranksPerNode);
        return new ReplacedGroup(backend, topology, Set.of(dead), false);
    }

    /** The same group, whose buffers do. */
    ReplacedGroup masking() {
        return new ReplacedGroup(backend, topology, dead, true);
    }

    private int numExperts() {
        return EXPERTS_PER_RANK * topology.numRanks();
    }

    NormalWorld normal() {
        RoutingSpec spec =
                RoutingSpec.of(topology.numRanks(), MAX_TOKENS, numExperts(), TOPK)
                        .withVaryingTokens(true);
        return NormalWorld.bf16(spec, HIDDEN);
    }

    /** Exchanges of one shape, whatever the seed. */
    NormalWorld normal(long seed) {
        RoutingSpec spec = RoutingSpec.of(topology.numRanks(), MAX_TOKENS, numExperts(), TOPK);
        return NormalWorld.bf16(spec.withSeed(seed), HIDDEN);
    }

    LowLatencyWorld lowLatency(long seed) {
        return lowLatency().world(seed);
    }

    /** That a rank can receive in normal mode. */
    int mostRows() {
        return MAX_TOKENS * topology.numRanks();
    }

    private LowLatencyShape lowLatency() {
        return LowLatencyShape.of(topology, MAX_TOKENS, HIDDEN, TOPK, numExperts());
    }

    @Override
    public EpTopology topology(TestBackend given) {
        return topology;
    }

    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(normal(0).limits())
                .lowLatency(lowLatency().limits())
                .network(backend.networkWithMasks())
                .maskTimedOutRanks(masks);
    }

    boolean isDead(RankContext context) {
        return dead.contains(context.rank());
    }

    /** Verified calls of all ranks. */
    void calls(RankContext context) {
        NormalWorld all = context.shared("normal", _ -> normal());
        calls(new NormalRank(context, all), lowLatency().rank(context, 7));
    }

    /** Calls of all ranks, after which the dead are gone. */
    void lose(RankContext context) {
        calls(context);
        context.meet();
        if (isDead(context)) {
            context.buffer().close();
        }
    }

    /** Verified calls of the ranks that are left. */
    void callsOfTheRest(RankContext context) {
        NormalWorld rest = context.shared("normal " + dead, _ -> normal().without(dead));
        calls(new NormalRank(context, rest), lowLatency().rest(context, dead));
    }

    private static void calls(NormalRank normal, LowLatencyRank lowLatency) {
        for (int round = 0; round < ROUNDS; round++) {
            normal.roundTrip();
            lowLatency.roundTrip();
        }
    }

    /** Masks the dead. */
    void mask(RankContext context) {
        context.mask(dead);
    }

    /** Opens a buffer in the place of a dead rank. */
    Buffer join(Communicator group) {
        return builder(group).join();
    }

    Buffer.Builder builder(Communicator group) {
        Buffer.Builder builder = Ranks.builder(backend, group, topology);
        limit(builder);
        return builder;
    }

    /**
     * Each rank's part in a new group, in which the dead are replaced; then all make verified
     * calls.
     *
     * @param number tells the new group from others of the same test
     */
    void replace(RankContext context, int number) throws Exception {
        replace(context, number, this::goOn, this::goOn);
    }

    /** The same, where new ranks and those that stay do something else then. */
    void replace(RankContext context, int number, Ranks.Body newRank, Ranks.Body stays)
            throws Exception {
        try (Communicator group = Ranks.regroup(context, number)) {
            if (isDead(context)) {
                try (Buffer buffer = join(group)) {
                    newRank.run(
                            new RankContext(
                                    backend, buffer.topology(), group, buffer, context.common()));
                }
            } else {
                context.buffer().admit(group);
                stays.run(context);
            }
            group.barrier(Ranks.TIMEOUT);
        }
    }

    private void goOn(RankContext context) {
        context.requireMasked(Set.of());
        calls(context);
        context.buffer().rejoin();
        calls(context);
    }
}
