package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Cards, ports and libraries that do less than others, or want more. */
class IbgdaCardsTest extends CardSuite {
    private static final int NUM_ROUNDS = 20;

    private void open(int queuesPerPeer, IbgdaOptions.Doorbells doorbells) {
        open(2, queuesPerPeer, options(doorbells, true, LONG, LONG));
    }

    private void requireExchange() {
        exchange(NUM_ROUNDS);
        requireNoFailure();
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
