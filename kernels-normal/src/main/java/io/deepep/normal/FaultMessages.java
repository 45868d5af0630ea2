package io.deepep.normal;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Word;

/** What a {@link Fault} of an operation means to the caller, on either backend. */
public final class FaultMessages {
    /** The limit of a plan, which is below that of the buffer. */
    private static final String WORST_TOKENS = "raise numWorstTokens of its plan";

    private final String operation;
    private final boolean isCombine;
    private final int rank;
    private final int numRanks;
    private final boolean internode;
    private final CallTimeouts timeouts;
    private final int numExperts;
    private final int capacity;
    private final String[] phases;

    /**
     * Messages of one operation.
     *
     * @param call what it is
     * @param topology this rank's place
     * @param timeouts how long it waits
     * @param numExperts of the operation
     * @param capacity rows that every rank's buffer has room for
     */
    public FaultMessages(
            NormalCall call,
            EpTopology topology,
            CallTimeouts timeouts,
            int numExperts,
            int capacity) {
        this.operation = call.text();
        this.isCombine = call == NormalCall.COMBINE;
        this.rank = topology.rank();
        this.numRanks = topology.numRanks();
        this.internode = topology.isInternode();
        this.timeouts = timeouts;
        this.numExperts = numExperts;
        this.capacity = capacity;
        this.phases = new String[FaultPhase.values().length];
        for (FaultPhase phase : FaultPhase.values()) {
            phases[phase.value()] = operation + "." + phase.text();
        }
    }

    /** How long the operation waits. */
    public CallTimeouts timeouts() {
        return timeouts;
    }

    /** What the operation waits for, as timeouts name it. */
    public String phase(FaultPhase phase) {
        return phases[phase.value()];
    }

    /** The exception for a fault. */
    public RuntimeException failure(Fault fault) {
        return switch (fault.code()) {
            case EXPERT_OUT_OF_RANGE, LAYOUT_MASK, LAYOUT_RANK_COUNT, LAYOUT_EXPERT_COUNT ->
                    new RoutingException(fault.at(), routing(fault, numExperts));
            case HEADER_MISMATCH -> mismatch(fault);
            case TOO_MANY_ROWS ->
                    capacity(
                            fault,
                            fault.expected() < capacity
                                    ? WORST_TOKENS
                                    : "raise NormalLimits.maxRecvTokens, or use WORST_CASE for it");
            case TIMEOUT -> expired(fault);
            case PEER_GONE -> givenUp(fault, fault.peer(), phase(fault.phase()), fault.seen());
            case PEER_ABORTED -> abandoned(fault);
            case OUT_OF_STEP ->
                    tooLate(
                            fault,
                            "has gone on without it (expected=%s observed=%s)"
                                    .formatted(call(fault.expected()), call(fault.seen())));
            case TOO_MANY_EXPANDED -> capacity(fault, WORST_TOKENS);
            case ROW_OUT_OF_RANGE -> rowOutOfRange(fault);
            case GRID_NOT_RESIDENT ->
                    new IllegalStateException(
                            "%s: the blocks of rank %s did not run together; lower Config.numSms or put fewer ranks on the GPU"
                                    .formatted(operation, rank));
            case HANDLE_INVALID ->
                    new RoutingException(
                            fault.at(),
                            operation
                                    + ": the dispatch of the handle has not run, or failed; dispatch its plan again first");
            case HANDLE_MASKED ->
                    new RoutingException(
                            fault.at(),
                            operation
                                    + ": ranks were masked or unmasked since the dispatch of the handle; dispatch its plan again first");
            case OK, OPERATION_MISMATCH, SELECTION_CHANGED, SELECTED_TOO_OFTEN ->
                    throw new IllegalArgumentException(fault + " is not a fault of normal mode");
        };
    }

    /**
     * Whether a rank that has such a fault leaves the call in the middle, so that its peers must
     * not wait for it: {@code is_abort} of exchange.cuh.
     */
    public static boolean isAbort(FaultCode code) {
        return switch (code) {
            case TIMEOUT, PEER_ABORTED, OUT_OF_STEP, GRID_NOT_RESIDENT, PEER_GONE -> true;
            default -> false;
        };
    }

    /** What is wrong with a rank's routing. */
    public static String routing(Fault fault, int numExperts) {
        int token = fault.token(), k = fault.k();
        long seen = fault.seen();
        return switch (fault.code()) {
            case EXPERT_OUT_OF_RANGE -> outOfRange(token, k, seen, numExperts);
            case LAYOUT_MASK ->
                    "layout.isTokenInRank[%s][%s]=%s but topkIdx says %s; take the layout from the same topkIdx"
                            .formatted(token, k, seen, 1 - seen);
            case LAYOUT_RANK_COUNT ->
                    "layout.numTokensPerRank[%s]=%s but layout.isTokenInRank names %s tokens; take both from one getDispatchLayout"
                            .formatted(token, k, seen);
            case LAYOUT_EXPERT_COUNT ->
                    "layout.numTokensPerExpert[%s]=%s but topkIdx selects it %s times; take the layout from the same topkIdx"
                            .formatted(token, k, seen);
            default -> throw new IllegalArgumentException(fault + " is not about routing");
        };
    }

    /** Kernels judge a rank's indices by its own numExperts, before ranks compare theirs. */
    private static String outOfRange(int token, int k, long expert, int numExperts) {
        String selection = "topkIdx[%s][%s]=%s".formatted(token, k, expert);
        return expert < -1 || expert >= numExperts
                ? "%s is not in [-1, numExperts=%s); use -1 for no selection"
                        .formatted(selection, numExperts)
                : "%s is out of range for the numExperts of that rank, but not for %s, which this rank gives; %s"
                        .formatted(selection, numExperts, "give the same numExperts on all ranks");
    }

    private RankMismatchException mismatch(Fault fault) {
        HeaderWord word = HeaderWord.of(fault.k());
        String optional = optional(word);
        if (optional != null && (fault.expected() == 0 || fault.seen() == 0)) {
            int giver = fault.seen() == 0 ? fault.peer() : fault.at();
            int other = fault.seen() == 0 ? fault.at() : fault.peer();
            return RankMismatchException.ofGiven(operation, optional, giver, other);
        }
        return RankMismatchException.of(
                word == HeaderWord.OP ? "normal mode" : operation,
                isCombine && word == HeaderWord.NUM_SCALES ? "format" : word.text(),
                fault.peer(),
                show(word, fault.expected(), fault.seen()),
                fault.at(),
                show(word, fault.seen(), fault.expected()));
    }

    /** What a rank gives whose word is not 0, or null if all ranks give it. */
    private String optional(HeaderWord word) {
        return switch (word) {
            case NUM_EXPERTS -> "topkIdx";
            case HAS_WEIGHTS -> "topkWeights";
            case TOPK -> isCombine ? "topkWeights" : null;
            default -> null;
        };
    }

    private Object show(HeaderWord word, long value, long other) {
        return switch (word) {
            case OP -> NormalCall.textOf(value);
            // Of rows that are equally wide, those in FP8 are shorter, and have the scales.
            case ROW_BYTES -> value > other ? DType.BF16 : DType.FP8_E4M3;
            case NUM_SCALES -> value == 0 ? DType.BF16 : isCombine ? "FP8" : DType.FP8_E4M3;
            case HANDLE_EPOCH -> "call " + Word.call((int) value);
            case NUM_SLOTS -> RingShape.describe((int) value);
            case MASKED -> Masks.describe((int) value, numRanks);
            default -> value;
        };
    }

    private static CapacityExceededException capacity(Fault fault, String cure) {
        return new CapacityExceededException(fault.at(), fault.seen(), fault.expected(), cure);
    }

    /**
     * What was seen is a flag, of which the call counts, or between nodes the number of rows that
     * came.
     */
    private DeepEpTimeoutException expired(Fault fault) {
        boolean rows = internode && fault.phase() == FaultPhase.ROWS;
        return timeouts.expired(
                fault.phase().begins(),
                rank,
                fault.peer(),
                phase(fault.phase()),
                rows ? fault.expected() : call(fault.expected()),
                rows ? fault.seen() : call(fault.seen()));
    }

    /** The call that a word is of. */
    private static long call(long word) {
        return Word.call(Word.epoch(word));
    }

    private DeepEpTimeoutException givenUp(Fault fault, int peer, String phase, long waitedNanos) {
        return DeepEpTimeoutException.givenUp(
                fault.phase().begins(), rank, peer, phase, waitedNanos);
    }

    private DeepEpTimeoutException tooLate(Fault fault, String left) {
        return DeepEpTimeoutException.tooLate(
                fault.phase().begins(),
                rank,
                fault.peer(),
                operation,
                phase(fault.phase()),
                left,
                fault.waitedNanos());
    }

    /** A peer gave up on somebody before this rank could notice by itself, or left by itself. */
    private DeepEpTimeoutException abandoned(Fault fault) {
        int culprit = fault.k();
        String phase = phase(fault.phase());
        if (culprit == rank) {
            return tooLate(fault, "had given up on it");
        }
        return culprit == fault.peer()
                ? DeepEpTimeoutException.left(rank, culprit, phase, fault.waitedNanos())
                : givenUp(
                        fault,
                        culprit,
                        "%s, in which rank %s gave up waiting for it"
                                .formatted(phase, fault.peer()),
                        fault.waitedNanos());
    }

    private RankMismatchException rowOutOfRange(Fault fault) {
        return new RankMismatchException(
                ("%s: rank %s offers %s rows but the handle of rank %s names row %s; combine the rows that the dispatch"
                                + " of the handle received")
                        .formatted(operation, fault.peer(), fault.expected(), rank, fault.seen()));
    }
}
