package io.deepep.normal.host.routing;

import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The expanded layout of a dispatch: for each local expert, aligned, the received rows that
 * selected it, in the order of rows and selections. Knows the way from an expanded row to its
 * received row and back.
 */
public final class ExpertGroups {
    private static final int NONE = -1;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final int numTopk;
    private final int alignment;
    private final int[] offsets;
    private final int[] cursors;
    private int[] expandedRows = {};
    private int[] receivedRows = {};
    private int[] selections = {};

    public ExpertGroups(int numLocalExperts, int numTopk, int alignment) {
        this.numTopk = numTopk;
        this.alignment = alignment;
        this.offsets = new int[numLocalExperts + 1];
        this.cursors = new int[numLocalExperts];
    }

    /** Rounds up. */
    public static long align(long count, int alignment) {
        return Math.ceilDiv(count, alignment) * (long) alignment;
    }

    /**
     * Finds where each expert's rows begin.
     *
     * @return the rows of all experts
     */
    public int place(HeaderExchange headers) {
        for (int e = 0; e < cursors.length; e++) {
            offsets[e + 1] = offsets[e] + (int) align(headers.selections(e), alignment);
        }
        return numRows();
    }

    /** Assigns received rows to expanded rows, from the expert indices that came along. */
    public void assign(MemorySegment memory, Region recvTopk, int numReceived) {
        expandedRows = ensure(expandedRows, numReceived * numTopk);
        receivedRows = ensure(receivedRows, numRows());
        selections = ensure(selections, numRows());
        Arrays.fill(receivedRows, 0, numRows(), NONE);
        System.arraycopy(offsets, 0, cursors, 0, cursors.length);
        for (int row = 0; row < numReceived; row++) {
            long at = recvTopk.at(row);
            for (int k = 0; k < numTopk; k++) {
                int local = memory.get(INT, at + 4L * k);
                int expanded = NONE;
                if (local >= 0) {
                    expanded = cursors[local]++;
                    receivedRows[expanded] = row;
                    selections[expanded] = k;
                }
                expandedRows[row * numTopk + k] = expanded;
            }
        }
    }

    private static int[] ensure(int[] array, int size) {
        return array.length >= size ? array : new int[size + size / 4];
    }

    /** M: rows of all experts with their padding. */
    public int numRows() {
        return offsets[cursors.length];
    }

    public int numLocalExperts() {
        return cursors.length;
    }

    /** First row of local expert {@code expert}. */
    public int offset(int expert) {
        return offsets[expert];
    }

    /** The received row shown at {@code expanded}, negative for padding. */
    public int receivedRow(int expanded) {
        return receivedRows[expanded];
    }

    /** Which of its token's selections {@code expanded} stands for; only if it is not padding. */
    public int selection(int expanded) {
        return selections[expanded];
    }

    /**
     * The expanded row of selection {@code k} of a received row, negative if that expert is
     * elsewhere.
     */
    public int expandedRow(int received, int k) {
        return expandedRows[received * numTopk + k];
    }
}
