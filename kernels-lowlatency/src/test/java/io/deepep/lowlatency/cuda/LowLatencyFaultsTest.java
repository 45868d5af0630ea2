package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What time-outs of kernels say of the time and of calls, which the host counts from 1. */
class LowLatencyFaultsTest {
    private static final CallTimeouts TIMEOUTS =
            new CallTimeouts(Duration.ofSeconds(1), Duration.ofSeconds(60));

    private static DeepEpTimeoutException failure(FaultCode code, FaultPhase phase, long seen) {
        LowLatencyErrors errors = new LowLatencyErrors(Kind.DISPATCH, 0, 16);
        Fault fault = Fault.ofWait(code, phase, 0, 2, 9, seen);
        return (DeepEpTimeoutException) new LowLatencyFaults(errors, TIMEOUTS).failure(fault);
    }

    @Test
    void theLimitThatWasOver() {
        assertThat(failure(FaultCode.TIMEOUT, FaultPhase.ROWS, 7))
                .hasMessageStartingWith(
                        "rank 0 waited more than 1.0 s for rank 2 in low-latency dispatch.rows: "
                                + "expected=8 observed=6; ");
        assertThat(failure(FaultCode.TIMEOUT, FaultPhase.HEADER, 7))
                .hasMessageStartingWith(
                        "rank 0 waited more than 60.0 s for rank 2 in low-latency dispatch.header");
    }

    @Test
    void theTimeUntilAPeerWasGone() {
        assertThat(failure(FaultCode.PEER_GONE, FaultPhase.HEADER, 2_000_000_000L))
                .hasMessageStartingWith(
                        "rank 0 waited 2.0 s for rank 2 in low-latency dispatch.header; ");
    }

    @Test
    void noneWhereKernelsDoNotTell() {
        DeepEpTimeoutException late = failure(FaultCode.OUT_OF_STEP, FaultPhase.HEADER, 11);
        assertThat(late)
                .hasMessage(
                        "rank 0 began low-latency dispatch too late: rank 2 has gone on without it"
                                + " (expected=8 observed=10); begin calls together, or raise"
                                + " startTimeout");
        assertThat(late.isPeerAhead()).isTrue();
        assertThat(failure(FaultCode.TIMEOUT, FaultPhase.NONE, 0))
                .hasMessageStartingWith(
                        "rank 0 waited for rank 2 in low-latency dispatch, having given up on it");
    }
}
