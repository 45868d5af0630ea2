package io.deepep.normal;

import io.deepep.Tensor;
import io.deepep.spi.Region;

/** Whose rows lie in a rank's receive region: each dispatch overwrites those of the one before. */
public final class ReceivedRows {
    private final Region region;
    private NormalHandle latest;
    private NormalHandle before;

    /** A graph may be replayed at any time, which nobody here learns of. */
    private boolean known = true;

    public ReceivedRows(NormalNvlLayout layout) {
        this.region = layout.recvRows();
    }

    /**
     * Rows arrive.
     *
     * @param handle of the dispatch that brings them
     * @param recorded whether it goes into a graph
     */
    public void overwrite(NormalHandle handle, boolean recorded) {
        before = latest;
        latest = handle;
        known &= !recorded;
    }

    /** The dispatch of {@code handle} was refused before a row moved. */
    public void keep(NormalHandle handle) {
        if (handle.equals(latest)) {
            latest = before;
        }
    }

    /**
     * Refuses to combine a view of rows that a later dispatch has overwritten; an empty one too, as
     * other ranks refuse theirs.
     *
     * @param x the rows to combine
     * @param buffer where this rank's NVL memory begins
     * @param handle to combine with
     */
    public void requireCurrent(Tensor x, long buffer, NormalHandle handle) {
        long offset = x.address() - buffer;
        boolean isView = offset >= region.offset() && offset < region.end();
        if (isView && known && !handle.equals(latest)) {
            throw new IllegalArgumentException(
                    "x is a view of received rows, which a later dispatch has overwritten; combine before the next"
                            + " dispatch, or receive a copy (DispatchPlan.Receive.COPY)");
        }
    }
}
