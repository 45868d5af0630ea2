package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What time-outs say of the time: the limit where it was over, else what the fault knows. */
class FaultMessagesTest {
    private static final CallTimeouts TIMEOUTS =
            new CallTimeouts(Duration.ofSeconds(1), Duration.ofSeconds(60));

    private final FaultMessages messages =
            new FaultMessages(NormalCall.DISPATCH, new EpTopology(0, 4, 4), TIMEOUTS, 16);

    private String of(Fault fault) {
        return messages.failure(fault).getMessage();
    }

    @Test
    void theLimitThatWasOver() {
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.ROWS, 0, 2, 9, 8)))
                .startsWith("rank 0 waited more than 1.0 s for rank 2 in dispatch.rows: ");
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.HEADER, 0, 2, 9, 8)))
                .startsWith("rank 0 waited more than 60.0 s for rank 2 in dispatch.header: ");
    }

    /** Flags are of a call and hold a value as well; counts of rows are numbers by themselves. */
    @Test
    void theCallOfTheFlagThatWasSeen() {
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.HEADER, 0, 2, 9, Word.of(7, 1))))
                .contains(": expected=9 observed=7; ");
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.ROWS, 0, 2, 9, 8)))
                .contains(": expected=9 observed=8; ");
    }

    @Test
    void aRankThatWasLeftBehind() {
        Fault fault = Fault.ofWait(FaultCode.OUT_OF_STEP, FaultPhase.HEADER, 0, 2, 9, 10);
        assertThat(of(fault))
                .startsWith("rank 0 waited for rank 2 in dispatch, which that rank has left");
        assertThat(of(fault.after(2_000_000_000L)))
                .startsWith("rank 0 waited 2.0 s for rank 2 in dispatch, which that rank has left");
    }

    @Test
    void aRankThatAnotherGaveUp() {
        Fault fault = Fault.ofAborted(FaultPhase.HEADER, 0, 1, 2, 9, FaultCode.TIMEOUT.value());
        assertThat(of(fault))
                .startsWith("rank 0 waited for rank 2 in dispatch.header, in which rank 1 gave up");
        assertThat(of(fault.after(2_000_000_000L)))
                .startsWith("rank 0 waited 2.0 s for rank 2 in dispatch.header, in which rank 1");
    }
}
