package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Word;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What time-outs say of the time: the limit where it was over, else what the fault knows. */
class FaultMessagesTest {
    private static final CallTimeouts TIMEOUTS =
            new CallTimeouts(Duration.ofSeconds(1), Duration.ofSeconds(60));

    private static String of(Fault fault) {
        return of(new EpTopology(0, 4, 4), fault);
    }

    private static String of(EpTopology topology, Fault fault) {
        return new FaultMessages(NormalCall.DISPATCH, topology, TIMEOUTS, 16, 100)
                .failure(fault)
                .getMessage();
    }

    @Test
    void theLimitThatWasOver() {
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.ROWS, 0, 2, 9, 8)))
                .startsWith("rank 0 waited more than 1.0 s for rank 2 in dispatch.rows: ");
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.HEADER, 0, 2, 9, 8)))
                .startsWith("rank 0 waited more than 60.0 s for rank 2 in dispatch.header: ");
    }

    /** Flags are of a call, whose number is given; rows between nodes are numbers by themselves. */
    @Test
    void theCallOfTheFlagThatWasSeen() {
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.HEADER, 0, 2, 9, Word.of(7, 1))))
                .contains(": expected=8 observed=6; ");
        assertThat(of(Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.ROWS, 0, 2, 9, Word.of(7, 1))))
                .contains(": expected=8 observed=6; ");
        Fault rows = Fault.ofWait(FaultCode.TIMEOUT, FaultPhase.ROWS, 0, 2, 9, 8);
        assertThat(of(new EpTopology(0, 4, 2), rows)).contains(": expected=9 observed=8; ");
    }

    @Test
    void aRankThatWasLeftBehind() {
        Fault fault = Fault.ofWait(FaultCode.OUT_OF_STEP, FaultPhase.HEADER, 0, 2, 9, 10);
        assertThat(of(fault.after(2_000_000_000L)))
                .isEqualTo(
                        "rank 0 began dispatch too late: rank 2 has gone on without it (expected=8"
                                + " observed=9); begin calls together, or raise startTimeout");
        assertThat(of(Fault.ofWait(FaultCode.OUT_OF_STEP, FaultPhase.ROWS, 0, 2, 9, 10)))
                .isEqualTo(
                        "rank 0 came too late in dispatch.rows: rank 2 has gone on without it"
                                + " (expected=8 observed=9); look for what delays rank 0 within"
                                + " calls, or raise timeout");
    }

    /** The rank that was given up learns so, and is not told to check the others. */
    @Test
    void aRankThatWasGivenUp() {
        assertThat(of(aborted(0)))
                .isEqualTo(
                        "rank 0 began dispatch too late: rank 1 had given up on it; begin calls"
                                + " together, or raise startTimeout");
    }

    @Test
    void aRankThatAnotherGaveUp() {
        assertThat(of(aborted(2)))
                .isEqualTo(
                        "rank 0 waited for rank 2 in dispatch.header, in which rank 1 gave up"
                                + " waiting for it; check that rank 2 is alive and makes the same"
                                + " calls, or raise startTimeout");
        assertThat(of(aborted(2).after(2_000_000_000L)))
                .startsWith("rank 0 waited 2.0 s for rank 2 in dispatch.header, in which rank 1");
    }

    /** It has not waited for anybody in vain: it was too late, or failed. */
    @Test
    void aRankThatLeftByItself() {
        assertThat(of(aborted(1).after(2_000_000)))
                .isEqualTo(
                        "rank 0 waited 2 ms for rank 1 in dispatch.header; rank 1 left the call"
                                + " with an error of its own, which says what to do");
    }

    @Test
    void anIndexOutOfTheRangeOfItsRankAlone() {
        assertThat(of(Fault.ofRouting(FaultCode.EXPERT_OUT_OF_RANGE, 1, 0, 3, 16)))
                .startsWith("rank 1: topkIdx[0][3]=16 is not in [-1, numExperts=16); ");
        assertThat(of(Fault.ofRouting(FaultCode.EXPERT_OUT_OF_RANGE, 1, 0, 3, 4)))
                .startsWith(
                        "rank 1: topkIdx[0][3]=4 is out of range for the numExperts of that rank,"
                                + " but not for 16, which this rank gives; ");
    }

    @Test
    void aMaskThatContradictsTheIndices() {
        for (long said : new long[] {0, 1}) {
            assertThat(of(Fault.ofRouting(FaultCode.LAYOUT_MASK, 1, 5, 3, said)))
                    .startsWith(
                            "rank 1: layout.isTokenInRank[5][3]=%s but topkIdx says %s; "
                                    .formatted(said, said == 0 ? 1 : 0));
        }
    }

    /** Of two limits, only the one that was reached is to be raised. */
    @Test
    void theLimitThatWasReached() {
        assertThat(of(Fault.ofRoom(FaultCode.TOO_MANY_ROWS, 2, 100, 120)))
                .isEqualTo(
                        "rank 2 would receive 120 rows, but has room for 100; raise"
                                + " NormalLimits.maxRecvTokens, or use WORST_CASE for it");
        assertThat(of(Fault.ofRoom(FaultCode.TOO_MANY_ROWS, 2, 99, 120)))
                .endsWith("has room for 99; raise numWorstTokens of its plan");
        assertThat(of(Fault.ofRoom(FaultCode.TOO_MANY_EXPANDED, 2, 100, 120)))
                .endsWith("; raise numWorstTokens of its plan");
    }

    /** Messages name what callers give, and the call, rather than words of headers. */
    @Test
    void whatRanksGiveDifferently() {
        assertThat(differ(NormalCall.DISPATCH, HeaderWord.ROW_BYTES, 512, 384))
                .isEqualTo(
                        "dispatch: ranks disagree on the type of x: rank 0 has BF16, rank 1 has"
                                + " FP8_E4M3; every rank must use the same value");
        assertThat(differ(NormalCall.CACHED_DISPATCH, HeaderWord.NUM_SCALES, 1, 0))
                .startsWith(
                        "cached dispatch: ranks disagree on the type of x: rank 0 has FP8_E4M3,"
                                + " rank 1 has BF16; ");
        assertThat(differ(NormalCall.COMBINE, HeaderWord.NUM_SCALES, 0, 2))
                .startsWith("combine: ranks disagree on format: rank 0 has BF16, rank 1 has FP8; ");
        assertThat(differ(NormalCall.DISPATCH, HeaderWord.HAS_WEIGHTS, 1, 0))
                .isEqualTo(
                        "dispatch: rank 0 gives topkWeights, rank 1 does not; give it on all ranks"
                                + " or on none");
        assertThat(differ(NormalCall.COMBINE, HeaderWord.TOPK, 0, 8))
                .startsWith("combine: rank 1 gives topkWeights, rank 0 does not; ");
        assertThat(differ(NormalCall.DISPATCH, HeaderWord.NUM_EXPERTS, 0, 8))
                .startsWith("dispatch: rank 1 gives topkIdx, rank 0 does not; ");
        assertThat(differ(NormalCall.DISPATCH, HeaderWord.NUM_EXPERTS, 4, 8))
                .startsWith("dispatch: ranks disagree on numExperts: rank 0 has 4, rank 1 has 8; ");
        assertThat(differ(NormalCall.DISPATCH, HeaderWord.OP, 1, 3))
                .startsWith("normal mode: ranks disagree on the operation: rank 0 has dispatch, ");
    }

    private static String differ(NormalCall call, HeaderWord word, long first, long second) {
        Fault fault =
                new Fault(
                        FaultCode.HEADER_MISMATCH,
                        FaultPhase.NONE,
                        1,
                        0,
                        -1,
                        word.value(),
                        first,
                        second);
        return new FaultMessages(call, new EpTopology(0, 4, 4), TIMEOUTS, 16, 100)
                .failure(fault)
                .getMessage();
    }

    private static Fault aborted(int culprit) {
        return Fault.ofAborted(FaultPhase.HEADER, 0, 1, culprit, 9, FaultCode.TIMEOUT.value());
    }
}
