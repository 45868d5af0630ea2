package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Network;
import io.deepep.cuda.CudaModule;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Cards, ports and libraries that do less than others, or want more. */
class IbgdaCardsTest {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final int NUM_ROUNDS = 20;

    private static CudaModule module;
    private static SoftwareCard card;

    private CardRanks ranks;

    @BeforeAll
    static void load() {
        module = CardRanks.requireChecks();
        card = SoftwareCard.require();
    }

    @AfterEach
    void nothingIsLeft() {
        if (ranks != null) {
            ranks.close();
        }
        card.faults("");
        assertThat(card.numObjects()).isZero();
    }

    private void open(int queuesPerPeer, IbgdaOptions.Doorbells doorbells) {
        ranks =
                new CardRanks(
                        2,
                        queuesPerPeer,
                        new IbgdaOptions(
                                List.of(new IbgdaOptions.Port("mlx5_0", 1, List.of())),
                                Network.Path.DEFAULT,
                                doorbells,
                                true,
                                true,
                                LONG,
                                LONG));
    }

    private void requireExchange() {
        assertThat(ranks.exchange(module, NUM_ROUNDS, LONG)).isZero();
        ranks.onEach(rank -> assertThat(ranks.failure(rank)).isEmpty());
    }

    @Test
    void timeStampsAreThoseOfTheCard() {
        card.faults("real-time");
        open(2, IbgdaOptions.Doorbells.AUTO);
        requireExchange();
    }

    @Test
    void packetsHaveTheGlobalHeaderThatPortsWant() {
        card.faults("global-header");
        open(2, IbgdaOptions.Doorbells.AUTO);
        requireExchange();
    }

    /** As with rdma-core before 45. Nothing is sent: the card may lose what two queues ring. */
    @Test
    void queuesShareARegister() {
        SoftwareCard.requireReachOfGpu(true);
        card.faults("one-register");
        open(2, IbgdaOptions.Doorbells.GPU);
        assertThat(ranks.ibgda(0).quiet(LONG)).isTrue();
    }
}
