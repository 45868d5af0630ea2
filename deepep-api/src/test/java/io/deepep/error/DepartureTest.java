package io.deepep.error;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class DepartureTest {
    private static final int WAITER = 5;
    private static final Departure DISK = Departure.failed(3, new IOException("disk full"));

    /** One that failed because it waited for {@code peer}. */
    private static Departure victim(int rank, int peer) {
        return Departure.failed(
                rank,
                new IllegalStateException(
                        new DeepEpTimeoutException(rank, peer, "dispatch.data", 1, 0, 1000)));
    }

    @Test
    void theRankThatIsGoneIsToBlame() {
        Departure left = Departure.left(1);
        assertThat(Departure.culprit(List.of(left), WAITER, 1)).contains(left);
        assertThat(Departure.culprit(List.of(left, DISK), WAITER, 3)).contains(DISK);
        // Whoever leaves in order may do so because of the other.
        assertThat(Departure.culprit(List.of(left, DISK), WAITER, 1)).contains(DISK);
    }

    @Test
    void aVictimPassesTheBlameOn() {
        List<Departure> departures = List.of(victim(1, 2), DISK, victim(2, 3));
        assertThat(Departure.culprit(departures, WAITER, 1)).contains(DISK);
        assertThat(Departure.culprit(departures, WAITER, 2)).contains(DISK);
        Departure other = Departure.failed(4, new IOException("no route"));
        List<Departure> two = List.of(other, victim(1, 2), victim(2, 3), DISK);
        assertThat(Departure.culprit(two, WAITER, 1)).contains(DISK);
        assertThat(Departure.culprit(List.of(victim(1, 0), DISK), WAITER, 1)).contains(DISK);
    }

    /** As when it forwards what the peer sent. */
    @Test
    void whoIsThereIsNotToBlameIfAnotherFailed() {
        assertThat(Departure.culprit(List.of(Departure.left(1), victim(2, 3), DISK), WAITER, 0))
                .contains(DISK);
        assertThat(Departure.culprit(List.of(Departure.left(1)), WAITER, 0)).isEmpty();
        assertThat(Departure.culprit(List.of(victim(2, 0)), WAITER, 0)).isEmpty();
    }

    /** Whom a victim waited for is named with what the victim says, though nobody knows it gone. */
    @Test
    void whomAVictimBlamesIsNamedInItsPlace() {
        Departure victim = victim(1, 4);
        assertThat(Departure.culprit(List.of(victim), WAITER, 1))
                .contains(new Departure(4, victim.reason(), false, 4));
        assertThat(Departure.culprit(List.of(victim), 4, 1)).contains(victim);
    }

    /** Those who went on without it are not at fault. */
    @Test
    void whoFailsBecauseItCameTooLateIsToBlame() {
        DeepEpTimeoutException tooLate =
                DeepEpTimeoutException.tooLate(
                        true, 2, 0, "dispatch", "dispatch.header", "has given up on it", 5);
        Departure late = Departure.failed(2, new IllegalStateException(tooLate));
        assertThat(late.blamed()).isEqualTo(2);
        assertThat(Departure.culprit(List.of(late), WAITER, 2)).contains(late);
        assertThat(Departure.culprit(List.of(late), WAITER, 0)).contains(late);
    }

    @Test
    void victimsOfOneAnotherAreNoEndlessSearch() {
        List<Departure> circle = List.of(victim(1, 2), victim(2, 1));
        assertThat(Departure.culprit(circle, WAITER, 1)).isPresent();
    }

    /** On virtual nodes the source of a token is missed, though its forwarder has died. */
    @Test
    void aTimeoutNamesWhomTheGroupKnowsToBeGone() {
        DeepEpTimeoutException seen =
                new DeepEpTimeoutException(WAITER, 0, "dispatch.data", 8, 7, 4_000_000_000L);
        assertThat(seen.blaming(List.of())).isSameAs(seen);
        assertThat(seen.blaming(List.of(Departure.left(1)))).isSameAs(seen);
        DeepEpTimeoutException named = seen.blaming(List.of(Departure.left(1), victim(2, 0), DISK));
        assertThat(named.peer()).isEqualTo(3);
        assertThat(named.rank()).isEqualTo(WAITER);
        assertThat(named)
                .hasCause(seen)
                .hasMessage(
                        "rank 3 failed: java.io.IOException: disk full; rank 5 waited more than 4.0 s for"
                                + " rank 3 in dispatch.data");
    }

    @Test
    void endlessTextsAreCut() {
        assertThat(Departure.failed(1, new IOException("x".repeat(100_000))).reason())
                .hasSize(2000);
    }
}
