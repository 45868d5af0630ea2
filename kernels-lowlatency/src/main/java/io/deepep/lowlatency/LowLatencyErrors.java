package io.deepep.lowlatency;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;

/**
 * The errors that all ranks get alike, on either backend.
 *
 * @param kind of the call
 * @param rank this rank
 * @param numExperts of the buffer
 */
public record LowLatencyErrors(Kind kind, int rank, int numExperts) {
    /** The call in messages. */
    public String operation() {
        return "low-latency " + kind.text();
    }

    /** What a call waits for, as time-outs name it. */
    public String phase(FaultPhase phase) {
        return operation() + "." + phase.text();
    }

    /**
     * A peer did not come in time.
     *
     * @param begins whether it had not yet begun the call
     * @param epoch what was waited for
     * @param seen the epoch seen last
     */
    public DeepEpTimeoutException expired(
            CallTimeouts timeouts,
            boolean begins,
            int peer,
            FaultPhase phase,
            long epoch,
            long seen) {
        return timeouts.expired(
                begins, rank, peer, phase(phase), CallEpoch.call(epoch), CallEpoch.call(seen));
    }

    /**
     * A peer has gone on to later calls without this rank.
     *
     * @param epoch of this rank's call
     * @param seen the epoch that the peer has reached
     */
    public DeepEpTimeoutException tooLate(
            int peer, FaultPhase phase, long epoch, long seen, long waited) {
        return DeepEpTimeoutException.tooLate(
                phase.begins(),
                rank,
                peer,
                operation(),
                phase(phase),
                "has gone on without it (expected=%s observed=%s)"
                        .formatted(CallEpoch.call(epoch), CallEpoch.call(seen)),
                waited);
    }

    /** What {@code source} says is wrong with its own selections. */
    public RoutingException ofSelections(
            FaultCode status, int source, int token, int k, long value, long maxTokens) {
        return switch (status) {
            case SELECTED_TOO_OFTEN -> selectedTooOften(source, k, value, maxTokens);
            case SELECTION_CHANGED -> selectionChanged(source, token, k, value);
            case HANDLE_INVALID -> handleInvalid(source);
            default -> expertOutOfRange(source, token, k, value);
        };
    }

    /** A selection of {@code source} is neither -1 nor an expert. */
    private RoutingException expertOutOfRange(int source, int token, int k, long value) {
        return new RoutingException(
                source,
                "%s is not in [-1, numExperts=%s)".formatted(selection(token, k, value), numExperts)
                        + (kind == Kind.COMBINE
                                ? "; combine with the topkIdx that was dispatched"
                                : "; use -1 for no selection"));
    }

    /** A selection of a combine is not the one of the dispatch. */
    private RoutingException selectionChanged(int source, int token, int k, long value) {
        return new RoutingException(
                source,
                selection(token, k, value)
                        + " is not what was dispatched; combine with the unchanged topkIdx of the dispatch");
    }

    private static String selection(int token, int k, long value) {
        return "topkIdx[" + token + "][" + k + "]=" + value;
    }

    /**
     * The memory of the dispatch that {@code source} names does not hold it, though the host has
     * not seen another one take it.
     */
    private RoutingException handleInvalid(int source) {
        return new RoutingException(
                source,
                operation()
                        + (kind == Kind.COMBINE
                                ? ": the dispatch of the handle failed, or a graph replayed since has dispatched"
                                        + " into its memory; dispatch again, and combine before you replay"
                                : ": a graph replayed since it was sent has dispatched into its memory; run the"
                                        + " receive hook before you replay"));
    }

    /** Ranks dispatch in different formats. */
    public RankMismatchException dispatchFormat(int mine, int peer, int theirs) {
        return mismatch(
                "format",
                LowLatencyFormats.dispatchName(mine),
                peer,
                LowLatencyFormats.dispatchName(theirs));
    }

    /** Ranks dispatch different numbers of selections. */
    public RankMismatchException numTopk(long mine, int peer, long theirs) {
        return mismatch("numTopk", mine, peer, theirs);
    }

    /** Ranks combine in different formats. */
    public RankMismatchException combineFormat(int mine, int peer, int theirs) {
        return mismatch(
                "format",
                LowLatencyFormats.combineName(mine),
                peer,
                LowLatencyFormats.combineName(theirs));
    }

    /** Ranks combine different dispatches, of these epochs. */
    public RankMismatchException otherDispatch(long mine, int peer, long theirs) {
        return mismatch(
                "the dispatch that it belongs to",
                "dispatch " + CallEpoch.call(mine),
                peer,
                "dispatch " + CallEpoch.call(theirs));
    }

    private RankMismatchException mismatch(String what, Object mine, int peer, Object theirs) {
        return RankMismatchException.of(operation(), what, rank, mine, peer, theirs);
    }

    /** A peer makes a call of the other kind. */
    public RankMismatchException otherKind(int peer) {
        return RankMismatchException.of(
                "low-latency mode", "the operation", rank, kind.text(), peer, kind.other().text());
    }

    /** {@code source} selects an expert more often than the expert has rows for one source. */
    private RoutingException selectedTooOften(int source, int expert, long times, long maxTokens) {
        return new RoutingException(
                source,
                ("expert %s is selected %s times, more than maxTokens=%s; select an expert once per token, or"
                                + " raise LowLatencyLimits.maxTokens")
                        .formatted(expert, times, maxTokens));
    }
}
