package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.exchange.ExchangeWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;

/**
 * The shape of cases: a group, exchanges that its buffers take, and each rank's share of them.
 *
 * @param <W> an exchange
 * @param <R> one rank's share
 */
public interface ExchangeShape<W extends ExchangeWorld, R extends ExchangeRank<W, ?>>
        extends RankGroup {
    int nodes();

    int ranksPerNode();

    int tokens();

    int experts();

    int topk();

    /** The group. */
    default EpTopology topology() {
        return Ranks.topology(nodes(), ranksPerNode());
    }

    /** The routing of an exchange of this shape: uniform, unless the mode says otherwise. */
    default RoutingSpec spec() {
        return RoutingSpec.of(nodes() * ranksPerNode(), tokens(), experts(), topk())
                .withSeed(toString().hashCode());
    }

    /** The exchange of a routing of this shape. */
    W world(RoutingSpec spec);

    /** What is left of that exchange for ranks that have masked others. */
    W without(RoutingSpec spec, Set<Integer> masked);

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

    /** The rank's share of what is left of the exchange while some ranks are masked. */
    default R rest(RankContext context, Set<Integer> masked) {
        return rest(context, masked, spec());
    }

    /** The same of another exchange of the same shape. */
    default R rest(RankContext context, Set<Integer> masked, long seed) {
        return rest(context, masked, spec().withSeed(seed));
    }

    private R rest(RankContext context, Set<Integer> masked, RoutingSpec spec) {
        List<Object> key = List.of(this, masked, spec);
        return share(context, context.shared(key, _ -> without(spec, masked)));
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

    /** Two runs with new buffers, each of two equal calls, give the same bits. */
    default void requireSameBits(TestBackend backend, W world) {
        ConcurrentMap<Integer, List<Tensor>> runs = new ConcurrentHashMap<>();
        for (int i = 0; i < 2; i++) {
            run(
                    backend,
                    _ -> {},
                    context -> {
                        R rank = share(context, world);
                        List<Tensor> seen =
                                runs.computeIfAbsent(context.rank(), _ -> new ArrayList<>());
                        seen.add(rank.roundTrip());
                        seen.add(rank.roundTrip());
                    });
        }
        // Those of this process's ranks.
        assertThat(runs).isNotEmpty();
        for (List<Tensor> seen : runs.values()) {
            assertThat(seen).hasSize(4);
            for (Tensor home : seen) {
                assertThat(HostTensors.firstDifference(seen.getFirst(), home)).isEqualTo(-1);
            }
        }
    }
}
