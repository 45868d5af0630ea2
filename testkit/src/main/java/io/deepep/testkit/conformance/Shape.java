package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.function.Consumer;

/**
 * The shape of cases: a group, exchanges that its buffers take, and each rank's share of them.
 *
 * @param <W> an exchange
 * @param <R> one rank's share
 */
public interface Shape<W, R> extends RankGroup {
    /** The group. */
    EpTopology topology();

    /** The routing of an exchange of this shape. */
    RoutingSpec spec();

    /** The exchange of a routing of this shape. */
    W world(RoutingSpec spec);

    /** The rank's share of an exchange. */
    R share(RankContext context, W world);

    @Override
    default EpTopology topology(TestBackend backend) {
        return topology();
    }

    /** Masked and repeated selections, different numbers of tokens, one rank without any. */
    default RoutingSpec raggedSpec() {
        return spec().ragged();
    }

    default W world() {
        return world(spec());
    }

    /** Another exchange of the same shape. */
    default W world(long seed) {
        return world(spec().withSeed(seed));
    }

    default R rank(RankContext context) {
        return rank(context, spec());
    }

    default R raggedRank(RankContext context) {
        return rank(context, raggedSpec());
    }

    /** The rank's share of another exchange of the same shape. */
    default R rank(RankContext context, long seed) {
        return rank(context, spec().withSeed(seed));
    }

    /** The rank's share of the exchange of a routing, which the ranks share. */
    default R rank(RankContext context, RoutingSpec spec) {
        return share(context, context.shared(spec, this::world));
    }

    /** Runs {@code body} on every rank, with a buffer of this shape and these options. */
    default void run(TestBackend backend, Consumer<Buffer.Builder> options, Ranks.Body body) {
        Ranks.run(
                backend,
                topology(),
                builder -> {
                    limit(builder);
                    options.accept(builder);
                },
                body);
    }
}
