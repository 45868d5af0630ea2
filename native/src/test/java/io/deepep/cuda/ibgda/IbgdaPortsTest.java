package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Two ports: both carry, and one that was down is named and mended, of all ranks or of one. */
class IbgdaPortsTest extends CardSuite {
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final int NUM_ROUNDS = 40;
    private static final List<IbgdaOptions.Port> PORTS = List.of(port(1), port(2));

    @BeforeAll
    static void requireTwoPorts() {
        Assumptions.assumeTrue("2".equals(System.getenv("DEEPEP_CARD_PORTS")), "one port");
    }

    private void open() {
        open(2, CardRanks.BLOCKS, options(PORTS));
    }

    private static IbgdaOptions options(List<IbgdaOptions.Port> ports) {
        return options(ports, IbgdaOptions.Doorbells.AUTO, true, LONG, LONG);
    }

    @Test
    void bothCarryHalfOfAllBytes() throws Exception {
        open();
        Map<String, Long> before = card.bytesByPort();
        exchange(NUM_ROUNDS);
        Map<String, Long> after = card.bytesByPort();
        long sent = (long) ranks.numRanks() * NUM_ROUNDS * CardRanks.BLOCKS * CardRanks.SLOT_BYTES;
        for (String port : List.of("mlx5_0:1", "mlx5_0:2")) {
            assertThat(after.get(port) - before.getOrDefault(port, 0L))
                    .as(port)
                    .isEqualTo(sent / 2);
        }
    }

    /** Which ranks cannot mend while it is down, and can when it is back. */
    @ParameterizedTest
    @ValueSource(strings = {"mlx5_0:1", "mlx5_0:2"})
    void onePortIsDownForAWhile(String port) {
        open();
        card.faults("port down " + port);
        assertThat(ranks.exchange(module, 1, SHORT)).isPositive();
        ranks.onEach(
                rank ->
                        assertThatThrownBy(() -> ranks.mend(rank))
                                .hasMessageContaining("port " + port + " is not active"));
        assertThat(ranks.failure(0)).get().asString().contains(" through " + port + " to rank 1: ");
        card.faults("");
        ranks.onEach(rank -> ranks.mend(rank));
        requireNoFailure();
        clearMemory();
        exchange(NUM_ROUNDS);
    }

    /**
     * A rank that cannot mend leaves the others reset. None of these waits later for what it sent
     * before: the card has forgotten that, though nothing has failed there.
     */
    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void thePortOfOneRankIsDownForAWhile() {
        int lost = 2;
        ranks = new CardRanks(3, _ -> 1, rank -> options(List.of(PORTS.get(rank == lost ? 1 : 0))));
        assertThat(ranks.exchange(module, 1, LONG)).isZero();
        clearMemory();
        card.faults("port down mlx5_0:2");
        assertThat(ranks.exchange(module, 1, SHORT)).isPositive();
        ranks.onEach(
                rank ->
                        assertThatThrownBy(() -> ranks.mend(rank))
                                .hasMessageContaining("rank 2: port mlx5_0:2 is not active"));
        card.faults("");
        ranks.onEach(rank -> assertThat(ranks.ibgda(rank).quiet(Duration.ofDays(1))).isFalse());
        ranks.onEach(rank -> ranks.mend(rank));
        clearMemory();
        exchange(NUM_ROUNDS);
        requireNoFailure();
    }

    /** As where the GPUs of one host have more ports: no queue pair would lead to its other end. */
    @Test
    void ranksHaveAsManyQueuePairsToAPeer() {
        assertThatThrownBy(
                        () ->
                                new CardRanks(3, rank -> rank < 2 ? 1 : 2, _ -> options(PORTS))
                                        .close())
                .hasStackTraceContaining(
                        "queue pairs to each peer: rank 0 has 1, rank 2 has 2, and all ranks must have as many");
    }
}
