package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Network;
import io.deepep.cuda.CudaModule;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** Tests over the card in software, with faults of its own; each leaves nothing behind on it. */
abstract class CardSuite {
    static final Duration LONG = Duration.ofSeconds(20);

    static CudaModule module;
    static SoftwareCard card;

    CardRanks ranks;

    @BeforeAll
    static void load() {
        module = CardRanks.requireChecks();
        card = SoftwareCard.require();
    }

    @BeforeEach
    void withoutFaults() {
        card.faults("");
    }

    @AfterEach
    void nothingIsLeft() {
        if (ranks != null) {
            ranks.close();
        }
        card.faults("");
        assertThat(card.numObjects()).isZero();
    }

    static IbgdaOptions.Port port(int number) {
        return new IbgdaOptions.Port("mlx5_0", number, List.of());
    }

    /** On one port. */
    static IbgdaOptions options(
            IbgdaOptions.Doorbells doorbells,
            boolean inGpu,
            Duration timeout,
            Duration meetingTimeout) {
        return options(List.of(port(1)), doorbells, inGpu, timeout, meetingTimeout);
    }

    static IbgdaOptions options(
            List<IbgdaOptions.Port> ports,
            IbgdaOptions.Doorbells doorbells,
            boolean inGpu,
            Duration timeout,
            Duration meetingTimeout) {
        return new IbgdaOptions(
                ports, Network.Path.DEFAULT, doorbells, inGpu, true, timeout, meetingTimeout);
    }

    void open(int numRanks, int queuesPerPeer, IbgdaOptions options) {
        ranks = new CardRanks(numRanks, queuesPerPeer, options);
    }

    /** All arrives as it should. */
    void exchange(int numRounds) {
        assertThat(ranks.exchange(module, numRounds, LONG)).isZero();
    }

    void requireNoFailure() {
        ranks.onEach(rank -> assertThat(ranks.failure(rank)).isEmpty());
    }

    void clearMemory() {
        ranks.onEach(rank -> ranks.memory(rank).fill((byte) 0));
    }
}
