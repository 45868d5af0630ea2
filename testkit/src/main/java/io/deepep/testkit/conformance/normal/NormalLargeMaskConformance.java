package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.provider.MethodSource;

/** Masked ranks of nodes of more ranks than a few. */
@BackendSuite(maskingAcrossNodes = true)
public record NormalLargeMaskConformance(TestBackend backend) implements NormalSuite {
    /** A masked rank waits until the others have made all their calls. */
    private static final Duration PATIENCE = Duration.ofSeconds(50);

    private static final int ROUNDS = 2;
    private static final int TOKENS = 5;
    private static final int HIDDEN = 128;
    private static final int TOPK = 6;

    /** Some ranks of a group that are lost. */
    record Loss(NormalShape shape, Set<Integer> absent) {
        @Override
        public String toString() {
            return shape.topology().numRdmaRanks()
                    + " x "
                    + shape.topology().numNvlRanks()
                    + " without "
                    + absent.stream().sorted().toList();
        }

        NormalWorld rest() {
            return shape.world().without(absent);
        }
    }

    private static Loss loss(int nodes, int ranksPerNode, Integer... absent) {
        int experts = 2 * nodes * ranksPerNode;
        return new Loss(
                new NormalShape(nodes, ranksPerNode, TOKENS, HIDDEN, DType.BF16, TOPK, experts),
                Set.of(absent));
    }

    private static Stream<Loss> fitting(TestBackend backend, Loss... losses) {
        return Stream.of(losses).filter(loss -> loss.shape().fits(backend));
    }

    /** Ranks that come first and last, and forwarders. */
    static Stream<Loss> some(TestBackend backend) {
        return fitting(
                backend,
                loss(1, 9, 4),
                loss(1, 12, 0, 11),
                loss(2, 9, 12),
                loss(2, 9, 0, 17),
                loss(3, 9, 9, 10));
    }

    /** Among them ranks of each word of a mask, and most of a node. */
    static Stream<Loss> many(TestBackend backend) {
        return fitting(
                backend,
                loss(1, 40, 0, 31, 32, 39),
                loss(1, 72, 0, 1, 2, 3, 71),
                loss(2, 36, 5, 35, 36, 40, 71),
                loss(8, 9, 0, 16, 71));
    }

    /** One that is waited for in vain. */
    static Stream<Loss> late(TestBackend backend) {
        return fitting(backend, loss(1, 10, 9), loss(2, 9, 13));
    }

    /** The others make every kind of call without them; then all are back. */
    @Cases
    @MethodSource("some")
    public void byHand(Loss loss) {
        goOn(loss);
    }

    @Tag("slow")
    @Cases
    @MethodSource("many")
    @Timeout(300)
    public void byHandInTheLargest(Loss loss) {
        goOn(loss);
    }

    private void goOn(Loss loss) {
        NormalWorld whole = loss.shape().world();
        Ranks.run(
                backend,
                loss.shape().topology(),
                builder -> withMasks(builder, whole),
                context -> {
                    NormalMaskConformance.calls(new NormalRank(context, whole));
                    NormalMaskConformance.goOnWithout(
                            context, loss.absent(), ROUNDS, loss.rest(), whole);
                });
    }

    private void withMasks(Buffer.Builder builder, NormalWorld world) {
        builder.normal(world.limits()).timeout(PATIENCE).network(backend.networkWithMasks());
    }

    /** What was dispatched to other ranks than take part now is refused by name. */
    @Cases
    @MethodSource("late")
    public void handlesOfOtherMasks(Loss loss) {
        NormalWorld whole = loss.shape().world();
        Ranks.run(
                backend,
                loss.shape().topology(),
                builder -> withMasks(builder, whole),
                context -> {
                    NormalRank rank = new NormalRank(context, whole);
                    DispatchHandle old = rank.dispatch(rank.plan(), whole.check()).handle();
                    Buffer buffer = context.buffer();
                    if (!loss.absent().contains(context.rank())) {
                        loss.absent().forEach(absent -> buffer.updateMask(absent, true));
                        assertThatThrownBy(() -> buffer.dispatch(rank.bare().cached(old).build()))
                                .isInstanceOf(RoutingException.class)
                                .hasMessageContaining("masked or unmasked since the dispatch");
                    }
                    NormalMaskConformance.comeBack(context, whole);
                });
    }

    /** A rank that stops is named, masked, left out and taken back. */
    @Cases
    @MethodSource("late")
    public void byTimeout(Loss loss) {
        EpTopology topology = loss.shape().topology();
        NormalWorld whole = loss.shape().world();
        int absent = loss.absent().iterator().next();
        Ranks.run(
                backend,
                topology,
                builder ->
                        builder.normal(whole.limits())
                                .timeout(Duration.ofSeconds(2))
                                .maskTimedOutRanks(true),
                context -> {
                    NormalMaskConformance.calls(new NormalRank(context, whole));
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != absent) {
                        NormalRank survivor = new NormalRank(context, loss.rest());
                        Misbehaviour.requirePeer(
                                absent, () -> survivor.call(survivor.plan().build()));
                        NormalMaskConformance.requireMasked(context, loss.absent());
                        for (int i = 0; i < ROUNDS; i++) {
                            NormalMaskConformance.calls(survivor);
                        }
                    }
                    context.communicator().barrier(PATIENCE);
                    assertThat(context.buffer().queryMask()).hasSize(topology.numRanks());
                    NormalMaskConformance.comeBack(context, whole);
                });
    }
}
