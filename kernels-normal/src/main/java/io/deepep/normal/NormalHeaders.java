package io.deepep.normal;

import io.deepep.error.CapacityExceededException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The headers of all ranks, one {@link NormalHeader} slot after the other, and the verdict that
 * every rank draws from them alike.
 */
public final class NormalHeaders {
    private static final int[] AGREED = {
        NormalHeader.NUM_EXPERTS,
        NormalHeader.HIDDEN,
        NormalHeader.DTYPE,
        NormalHeader.NUM_TOPK,
        NormalHeader.HAS_WEIGHTS,
        NormalHeader.HANDLE_EPOCH,
        NormalHeader.NUM_CHANNELS,
        NormalHeader.RDMA_RECV_CHUNK
    };
    private static final String[] AGREED_NAMES = {
        "numExperts",
        "hidden",
        "dtype of x",
        "numTopk",
        "topkWeights given",
        "dispatch of the handle",
        "numChannels",
        "rdmaRecvChunk"
    };

    private final MemorySegment memory;
    private final long slotBytes;
    private final int numRanks;

    /**
     * A view of headers.
     *
     * @param memory readable by this thread; the first slot at its beginning
     * @param slotBytes from one slot to the next
     */
    public NormalHeaders(MemorySegment memory, long slotBytes, int numRanks) {
        this.memory = memory;
        this.slotBytes = slotBytes;
        this.numRanks = numRanks;
    }

    /** A field of {@code rank}'s header. */
    public long field(int rank, int field) {
        return memory.get(
                ValueLayout.JAVA_LONG, rank * slotBytes + NormalHeader.fieldOffset(field));
    }

    /** Rows that {@code source} sends to {@code destination}. */
    public int tokens(int source, int destination) {
        return memory.get(
                ValueLayout.JAVA_INT, source * slotBytes + NormalHeader.tokensOffset(destination));
    }

    /** Selections of {@code expert} by {@code source}. */
    public int selections(int source, int expert) {
        return memory.get(
                ValueLayout.JAVA_INT,
                source * slotBytes + NormalHeader.selectionsOffset(numRanks, expert));
    }

    /**
     * Rows that the ranks before {@code source} send to {@code destination}: where those of {@code
     * source} begin.
     */
    public int firstRow(int source, int destination) {
        int rows = 0;
        for (int s = 0; s < source; s++) {
            rows += tokens(s, destination);
        }
        return rows;
    }

    /** Rows that {@code destination} receives. */
    public int numRows(int destination) {
        return firstRow(numRanks, destination);
    }

    /** Selections of {@code expert} by all ranks. */
    public int numSelections(int expert) {
        int selections = 0;
        for (int source = 0; source < numRanks; source++) {
            selections += selections(source, expert);
        }
        return selections;
    }

    /**
     * Throws what all ranks must learn, the same on every rank.
     *
     * @param capacity rows that every rank has room for
     * @throws RankMismatchException if the ranks do different things
     * @throws RoutingException if a rank's routing is not valid
     * @throws CapacityExceededException if more rows would arrive at a rank than it has room for
     */
    public void check(int capacity) {
        for (int rank = 1; rank < numRanks; rank++) {
            long mine = field(rank, NormalHeader.OPERATION);
            long first = field(0, NormalHeader.OPERATION);
            if (mine != first) {
                throw RankMismatchException.of(
                        "normal mode",
                        "the operation",
                        0,
                        NormalHeader.operationName(first),
                        rank,
                        NormalHeader.operationName(mine));
            }
        }
        for (int i = 0; i < AGREED.length; i++) {
            checkAgreed(AGREED[i], AGREED_NAMES[i]);
        }
        for (int rank = 0; rank < numRanks; rank++) {
            checkStatus(rank);
        }
        if (field(0, NormalHeader.OPERATION) == NormalHeader.OP_DISPATCH) {
            for (int rank = 0; rank < numRanks; rank++) {
                checkRoom(rank, capacity);
            }
        }
    }

    private void checkAgreed(int field, String name) {
        long first = field(0, field);
        for (int rank = 1; rank < numRanks; rank++) {
            if (field(rank, field) != first) {
                String operation = NormalHeader.operationName(field(0, NormalHeader.OPERATION));
                throw RankMismatchException.of(
                        operation,
                        name,
                        0,
                        show(field, first),
                        rank,
                        show(field, field(rank, field)));
            }
        }
    }

    private static Object show(int field, long value) {
        return switch (field) {
            case NormalHeader.DTYPE -> NormalHeader.dtypeName(value);
            case NormalHeader.HAS_WEIGHTS -> value != 0;
            case NormalHeader.HANDLE_EPOCH -> "operation " + value;
            default -> value;
        };
    }

    private void checkStatus(int rank) {
        long status = field(rank, NormalHeader.STATUS);
        if (status != NormalHeader.STATUS_OK) {
            throw new RoutingException(
                    rank,
                    statusMessage(
                            (int) status,
                            field(rank, NormalHeader.DETAIL),
                            field(rank, NormalHeader.DETAIL + 1),
                            field(rank, NormalHeader.DETAIL + 2),
                            field(rank, NormalHeader.NUM_EXPERTS)));
        }
    }

    /** What a status and its details mean. */
    public static String statusMessage(int status, long a, long b, long c, long numExperts) {
        return switch (status) {
            case NormalHeader.STATUS_TOPK_RANGE ->
                    "topkIdx["
                            + a
                            + "]["
                            + b
                            + "]="
                            + c
                            + " is not in [-1, numExperts="
                            + numExperts
                            + "); use -1 for no selection";
            case NormalHeader.STATUS_LAYOUT_RANK_COUNT ->
                    "layout.numTokensPerRank["
                            + a
                            + "]="
                            + b
                            + " but layout.isTokenInRank names "
                            + c
                            + " tokens; take both from one getDispatchLayout";
            case NormalHeader.STATUS_LAYOUT_MASK ->
                    "layout.isTokenInRank["
                            + a
                            + "]["
                            + b
                            + "]="
                            + c
                            + " but topkIdx says "
                            + (1 - c)
                            + "; take the layout from the same topkIdx";
            case NormalHeader.STATUS_LAYOUT_EXPERT_COUNT ->
                    "layout.numTokensPerExpert["
                            + a
                            + "]="
                            + b
                            + " but topkIdx selects it "
                            + c
                            + " times; take the layout from the same topkIdx";
            default -> "routing status " + status + " (" + a + ", " + b + ", " + c + ")";
        };
    }

    private void checkRoom(int rank, int capacity) {
        long rows = 0;
        for (int source = 0; source < numRanks; source++) {
            rows += tokens(source, rank);
        }
        if (rows > capacity) {
            throw new CapacityExceededException(
                    rank, rows, capacity, "raise NormalLimits.maxRecvTokens, or use WORST_CASE");
        }
        long worst = field(rank, NormalHeader.NUM_WORST_TOKENS);
        if (worst == 0) {
            return;
        }
        long needed = field(rank, NormalHeader.EXPANDED) == 0 ? rows : expandedRows(rank);
        if (needed > worst) {
            throw new CapacityExceededException(
                    rank, needed, worst, "raise numWorstTokens of its plan");
        }
    }

    /** Rows of {@code rank} in the expanded layout. */
    private long expandedRows(int rank) {
        int numLocalExperts = (int) field(rank, NormalHeader.NUM_EXPERTS) / numRanks;
        long alignment = field(rank, NormalHeader.EXPERT_ALIGNMENT);
        long rows = 0;
        for (int expert = rank * numLocalExperts; expert < (rank + 1) * numLocalExperts; expert++) {
            rows += (numSelections(expert) + alignment - 1) / alignment * alignment;
        }
        return rows;
    }
}
