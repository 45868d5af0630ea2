package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.Departure;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whom a rank blames when its time is over. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ExchangeTest {
    private static final int SIZE = 5;
    private static final long TIMEOUT_NANOS = 40_000_000;

    private final Exchange exchange = new Exchange(0, SIZE, RankAddress.create(0, SIZE));
    private final List<BitSet> asked = new ArrayList<>();
    private long round;

    ExchangeTest() {
        exchange.setMembers(
                List.of(
                        RankAddress.create(0, SIZE),
                        RankAddress.create(1, SIZE),
                        RankAddress.create(2, SIZE),
                        RankAddress.create(3, SIZE),
                        RankAddress.create(4, SIZE)));
    }

    /** Waits in vain in an exchange into which {@code come} have come. */
    private DeepEpTimeoutException waitFor(List<Integer> come, Consumer<BitSet> ask) {
        round = exchange.enter();
        for (int peer : come) {
            exchange.receive(peer, round, 0, new byte[0], 0, 0);
        }
        DeepEpTimeoutException timeout =
                catchThrowableOfType(
                        DeepEpTimeoutException.class,
                        () ->
                                exchange.await(
                                        round,
                                        () -> "test",
                                        System.nanoTime(),
                                        TIMEOUT_NANOS,
                                        ask));
        exchange.leave();
        return timeout;
    }

    /** The same, where those that are asked answer at once. */
    private int blamed(List<Integer> come, Map<Integer, Integer> answers) {
        return waitFor(
                        come,
                        missing -> {
                            asked.add(missing);
                            answers.forEach((peer, whom) -> exchange.setAwaited(peer, round, whom));
                        })
                .peer();
    }

    @Test
    void whoDoesNotAnswerIsToBlame() {
        assertThat(blamed(List.of(0, 1, 4), Map.of(2, 3))).isEqualTo(3);
        assertThat(blamed(List.of(0, 1, 4), Map.of())).isEqualTo(2);
        assertThat(asked).allSatisfy(missing -> assertThat(missing.toString()).isEqualTo("{2, 3}"));
    }

    /** It stopped after it had told this rank, and before it told the others. */
    @Test
    void theRankThatAllOthersLackIsToBlame() {
        assertThat(blamed(List.of(0, 3), Map.of(1, 3, 2, 3, 4, 3))).isEqualTo(3);
        assertThat(blamed(List.of(0), Map.of(1, 2, 2, 4, 3, 4, 4, Exchange.NOBODY))).isEqualTo(4);
    }

    @Test
    void ranksThatWaitForEachOtherOrForThisOneEndNothing() {
        assertThat(blamed(List.of(0, 3, 4), Map.of(1, 2, 2, 1))).isIn(1, 2);
        assertThat(blamed(List.of(0, 3, 4), Map.of(1, 2, 2, 0))).isEqualTo(2);
        assertThat(blamed(List.of(0, 2, 3, 4), Map.of(1, Exchange.NOBODY))).isEqualTo(1);
    }

    @Test
    void whatRanksSaidInAnotherExchangeDoesNotCount() {
        DeepEpTimeoutException timeout =
                waitFor(
                        List.of(0, 3, 4),
                        missing -> {
                            exchange.setAwaited(1, 0, 2);
                            exchange.setAwaited(2, 7, 1);
                            exchange.setAwaited(2, 0, SIZE);
                        });
        assertThat(timeout.peer()).isEqualTo(2);
        assertThat(exchange.awaited()).isEqualTo(Exchange.NOBODY);
    }

    /** Nobody sends to it any more. */
    @Test
    void aRankThatWasTakenForLostWaitsForNobody() {
        exchange.enter();
        assertThatThrownBy(
                        () ->
                                exchange.await(
                                        0,
                                        () -> "test",
                                        System.nanoTime(),
                                        Duration.ofSeconds(1).toNanos(),
                                        missing -> exchange.setExcluded(3)))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContainingAll(
                        "rank 3 has taken it for lost", "raise DEEPEP_FAILURE_SECONDS");
    }

    @Test
    void ofRanksThatLostEachOtherEachNamesTheOther() {
        exchange.depart(Departure.lost(3, "its process ended"));
        exchange.setExcluded(3);
        assertThat(blamed(List.of(0, 1, 2, 4), Map.of())).isEqualTo(3);
    }

    @Test
    void whoIsAskedNamesTheRankThatIsMissing() {
        List<Integer> named = new ArrayList<>();
        waitFor(List.of(0, 1, 2), missing -> named.add(exchange.awaited()));
        assertThat(named).containsExactly(3);
    }
}
