package io.deepep.error;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** An error names the time that is known, and no other. */
class DeepEpTimeoutExceptionTest {
    private static final long SECOND = 1_000_000_000;
    private static final long NOT_KNOWN = DeepEpTimeoutException.NOT_KNOWN;

    @Test
    void aTimeoutThatIsOverIsLessThanTheWait() {
        DeepEpTimeoutException error =
                new DeepEpTimeoutException(3, 5, "dispatch.rows", 17, 16, 30 * SECOND);
        assertThat(error)
                .hasMessage(
                        "rank 3 waited more than 30.0 s for rank 5 in dispatch.rows: expected=17"
                                + " observed=16; check that rank 5 is alive and makes the same"
                                + " calls, or raise timeout");
        assertThat(error.waited()).isEqualTo(Duration.ofSeconds(30));
        assertThat(DeepEpTimeoutException.notBegun(3, 5, "dispatch.header", 17, 16, 30 * SECOND))
                .hasMessageContaining("waited more than 30.0 s for rank 5")
                .hasMessageEndingWith("raise startTimeout");
    }

    @Test
    void noTimeIsRoundedUp() {
        assertThat(new DeepEpTimeoutException(3, 5, "dispatch.rows", 17, 16, SECOND / 4))
                .hasMessageStartingWith("rank 3 waited more than 250 ms for rank 5 in");
        assertThat(new DeepEpTimeoutException(3, 5, "dispatch.rows", 17, 16, 2 * SECOND - 1))
                .hasMessageStartingWith("rank 3 waited more than 1.9 s for rank 5 in");
    }

    @Test
    void aWaitThatEndedBeforeIsAsLongAsItWas() {
        DeepEpTimeoutException late =
                DeepEpTimeoutException.tooLate(
                        true,
                        3,
                        5,
                        "dispatch",
                        "dispatch.header",
                        "had given up on it",
                        2 * SECOND);
        assertThat(late)
                .hasMessage(
                        "rank 3 began dispatch too late: rank 5 had given up on it; begin calls"
                                + " together, or raise startTimeout");
        assertThat(late.isPeerAhead()).isTrue();
        assertThat(late.waited()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void whatIsNotKnownIsNotSaid() {
        DeepEpTimeoutException error =
                DeepEpTimeoutException.givenUp(true, 3, 5, "dispatch.header", NOT_KNOWN);
        assertThat(error)
                .hasMessageStartingWith("rank 3 waited for rank 5 in dispatch.header; ")
                .hasMessageEndingWith("raise startTimeout");
        assertThat(error.waited()).isZero();
        assertThat(error.blaming(List.of(Departure.left(5))))
                .hasMessage(
                        "rank 5 has left the group; rank 3 waited for rank 5 in dispatch.header");
    }

    /** Ranks that meet wait in the communicator, whose words and limit are not the caller's. */
    @Test
    void ranksThatMeetNameTheCallAndItsLimit() {
        DeepEpTimeoutException error =
                new DeepEpTimeoutException(0, 3, "communicator exchange", 4, 3, SECOND);
        DeepEpTimeoutException named = error.inMeeting("open its buffer");
        assertThat(named)
                .hasMessage(
                        "rank 0 waited more than 1.0 s for rank 3 to open its buffer; check that"
                                + " rank 3 is alive and makes the same calls, or raise"
                                + " startTimeout")
                .hasCause(error);
        assertThat(named.peer()).isEqualTo(3);
        assertThat(named.waited()).isEqualTo(Duration.ofSeconds(1));
        DeepEpTimeoutException gone =
                new DeepEpTimeoutException(0, Departure.left(3), "communicator exchange", SECOND);
        assertThat(gone.inMeeting("open its buffer")).isSameAs(gone);
    }
}
