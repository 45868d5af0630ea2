package io.deepep.lowlatency;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Word;
import java.util.function.LongFunction;

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
                begins, rank, peer, phase(phase), Word.call((int) epoch), Word.call((int) seen));
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
                        .formatted(Word.call((int) epoch), Word.call((int) seen)),
                waited);
    }

    /**
     * What {@code source} says is wrong with its own selections, or with the memory of its
     * dispatch: that is not the one it names, though the host has not seen another one take it.
     *
     * @param k of the selection; the expert that is selected too often
     * @param value of the selection; how often the expert is selected
     */
    public RoutingException ofSelections(
            FaultCode status, int source, int token, int k, long value, long maxTokens) {
        boolean combines = kind == Kind.COMBINE;
        String selection = "topkIdx[" + token + "][" + k + "]=" + value;
        return new RoutingException(
                source,
                switch (status) {
                    case SELECTED_TOO_OFTEN ->
                            ("expert %s is selected %s times, more than maxTokens=%s; select an expert once per"
                                            + " token, or raise LowLatencyLimits.maxTokens")
                                    .formatted(k, value, maxTokens);
                    case SELECTION_CHANGED ->
                            selection
                                    + " is not what was dispatched; combine with the unchanged topkIdx of the dispatch";
                    case HANDLE_INVALID ->
                            operation()
                                    + (combines
                                            ? ": the dispatch of the handle failed, or a graph replayed since has"
                                                    + " dispatched into its memory; dispatch again, and combine"
                                                    + " before you replay"
                                            : ": a graph replayed since it was sent has dispatched into its memory;"
                                                    + " run the receive hook before you replay");
                    default ->
                            "%s is not in [-1, numExperts=%s); %s"
                                    .formatted(
                                            selection,
                                            numExperts,
                                            combines
                                                    ? "combine with the topkIdx that was dispatched"
                                                    : "use -1 for no selection");
                });
    }

    /**
     * Ranks make the call in different ways.
     *
     * @param word of their headers, which says so: a {@link DispatchWord} or {@link CombineWord}
     */
    public RankMismatchException mismatch(int word, long mine, int peer, long theirs) {
        if (kind == Kind.DISPATCH) {
            return word == DispatchWord.FORMAT.value()
                    ? mismatch(LowLatencyFormats::dispatchName, mine, peer, theirs)
                    : mismatch("numTopk", Long::toString, mine, peer, theirs);
        }
        return word == CombineWord.ROW_FORMAT.value()
                ? mismatch(LowLatencyFormats::combineName, mine, peer, theirs)
                : mismatch(
                        "the dispatch that it belongs to",
                        epoch -> "dispatch " + Word.call((int) epoch),
                        mine,
                        peer,
                        theirs);
    }

    /** How rows travel: their size, or else their format. */
    private RankMismatchException mismatch(
            LongFunction<String> name, long mine, int peer, long theirs) {
        long hidden = LowLatencyFormats.hidden(mine);
        long theirHidden = LowLatencyFormats.hidden(theirs);
        return hidden != theirHidden
                ? mismatch("hidden", Long::toString, hidden, peer, theirHidden)
                : mismatch("format", name, mine, peer, theirs);
    }

    private RankMismatchException mismatch(
            String what, LongFunction<String> name, long mine, int peer, long theirs) {
        return RankMismatchException.of(
                operation(), what, rank, name.apply(mine), peer, name.apply(theirs));
    }

    /** A peer makes a call of the other kind. */
    public RankMismatchException otherKind(int peer) {
        return RankMismatchException.of(
                "low-latency mode", "the operation", rank, kind.text(), peer, kind.other().text());
    }
}
