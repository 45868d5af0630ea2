package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Masks of normal mode over cards: what becomes of queue pairs to a rank that is left out. */
class IbgdaMaskTest extends CardCases {
    private static final int LOST = 1;
    private static final int ROUNDS = 2;

    private static NormalWorld world(EpTopology topology) {
        int ranks = topology.numRanks();
        return NormalWorld.of(RoutingSpec.of(ranks, 16, 4 * ranks, 4), 256, DType.BF16);
    }

    /**
     * The queue pair to a rank fails. That is told with the time-out of the call that it spoils; it
     * is no news while the rank is left out, and over when it is back.
     */
    @Test
    void failedQueuePairIsMended() {
        EpTopology topology = Ranks.topology(2, 1);
        NormalWorld whole = world(topology);
        NormalWorld rest = whole.without(LOST);
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                topology,
                builder ->
                        builder.normal(whole.limits())
                                .timeout(Duration.ofSeconds(2))
                                .maskTimedOutRanks(true),
                context -> {
                    new NormalRank(context, whole).roundTrip();
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != LOST) {
                        loseInVain(context, whole);
                        assertThat(network(context).networkFailure()).isEmpty();
                        for (int i = 0; i < ROUNDS; i++) {
                            new NormalRank(context, rest).roundTrip();
                        }
                        card.faults("");
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                    context.buffer().rejoin();
                    assertThat(context.buffer().queryMask()).containsOnly(0);
                    for (int i = 0; i < ROUNDS; i++) {
                        new NormalRank(context, whole).roundTrip();
                    }
                });
    }

    private void loseInVain(RankContext context, NormalWorld whole) {
        card.faults("fail 0 retry-exceeded");
        NormalRank rank = new NormalRank(context, whole);
        DeepEpTimeoutException late = Misbehaviour.requirePeer(LOST, rank::roundTrip);
        assertThat(Arrays.asList(late.getSuppressed()))
                .anyMatch(why -> why.getMessage().contains(" to rank 1: "));
        assertThat(context.buffer().queryMask()[LOST]).isEqualTo(1);
    }

    private static Resources network(RankContext context) {
        return ((RankBuffer) context.buffer()).resources();
    }

    /** A buffer that has queue pairs to its peers alone says how it would have more. */
    @Test
    void masksAreOptional() {
        EpTopology topology = Ranks.topology(2, 2);
        NormalWorld whole = world(topology);
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                topology,
                builder -> builder.normal(whole.limits()),
                context -> {
                    int other = (context.rank() + 1) % topology.numRanks();
                    assertThatThrownBy(() -> context.buffer().updateMask(other, true))
                            .isInstanceOf(UnsupportedOperationException.class)
                            .hasMessageEndingWith(", or with Network.ibgda().withMasks(true)");
                    new NormalRank(context, whole).roundTrip();
                });
    }
}
