package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What a rank shows the others: a cell of slots for each of them, then a flag for each slot. Beside
 * it lies a source of the size of a cell, every word of which is the rank + 1.
 *
 * @param cellBytes of a rank's slots, a multiple of 16
 * @param slots an even number
 */
record PutMemory(int numRanks, long cellBytes, int slots) {
    private static final long RANK_0 = 0x1_0000_0001L;

    private long flagsBytes() {
        return (long) Long.BYTES * slots;
    }

    /** Cells and flags. */
    long numBytes() {
        return numRanks * (cellBytes + flagsBytes());
    }

    void fillSource(CudaStream stream, long source, int rank) {
        stream.fillInts(source, rank + 1, cellBytes / Integer.BYTES);
    }

    /**
     * What a rank whose memory begins at {@code base} needs to know, except its epoch and its
     * source.
     */
    Params params(Arena arena, PutLoad load, int rank, long base) {
        Params params = BenchStructs.PUT.allocate(arena);
        network(params).set("base", base).setInt("node", rank).setInt("num_nodes", load.ranks());
        setCells(params, "slots", 0, cellBytes);
        setCells(params, "flags", numRanks * cellBytes, flagsBytes());
        return params.set("slot_bytes", load.slotBytes())
                .set("row_bytes", load.rowBytes())
                .set("return_bytes", load.returnBytes())
                .setInt("peer", rank == 0 ? 1 : 0)
                .setInt("num_rows", load.rows());
    }

    /** What those parameters say of the network. */
    static Params network(Params params) {
        return params.inner("network", NetworkStructs.NETWORK);
    }

    private static void setCells(Params params, String field, long offset, long stride) {
        params.inner(field, NetworkStructs.CELLS).set("offset", offset).set("stride", stride);
    }

    /** Requires that all of {@code row} is of rank 0's source. */
    static void requireFromRank0(MemorySegment row) {
        for (long at = 0; at < row.byteSize(); at += Long.BYTES) {
            if (row.get(JAVA_LONG, at) != RANK_0) {
                throw new IllegalStateException(
                        "byte " + at + " of a put of " + row.byteSize() + " bytes did not arrive");
            }
        }
    }
}
