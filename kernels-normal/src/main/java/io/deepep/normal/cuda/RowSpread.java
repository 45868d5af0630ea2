package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** How the rows of one dispatch spread over the ranks, for observers. */
final class RowSpread {
    /** [R] This rank's rows at each rank. */
    private final int[] sent;

    /** [R] Rows of each rank here. */
    private final int[] received;

    /** Rows of this rank's tokens that pass over NVLink, on whichever node. */
    private final long nvlinkRows;

    /** Rows of this rank's tokens that pass between nodes. */
    private final long rdmaRows;

    private RowSpread(int[] sent, int[] received, long nvlinkRows, long rdmaRows) {
        this.sent = sent;
        this.received = received;
        this.nvlinkRows = nvlinkRows;
        this.rdmaRows = rdmaRows;
    }

    /**
     * Reads them from what the dispatch's kernel left behind.
     *
     * @param memory {@link NormalNvlLayout#headers}, then across nodes {@link
     *     InternodeRouting#ownRows}
     */
    static RowSpread read(
            MemorySegment memory, Region headers, EpTopology topology, int numTokens) {
        int me = topology.rank();
        int numRanks = topology.numRanks();
        int firstCount = HeaderWord.firstCount(topology);
        // Peers may have begun their next call, in the other parity; this rank's own had not.
        int even = epoch(memory, at(headers, 0, me, 0));
        int odd = epoch(memory, at(headers, 1, me, 0));
        int parity = odd - even > 0 ? 1 : 0;
        int epoch = parity == 1 ? odd : even;
        int[] sent = new int[numRanks];
        int[] received = new int[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            sent[rank] = word(memory, at(headers, parity, me, firstCount + rank));
            // A masked rank has left the header of an earlier call.
            long count = at(headers, parity, rank, firstCount + me);
            received[rank] = epoch(memory, count) == epoch ? word(memory, count) : 0;
        }
        if (!topology.isInternode()) {
            return new RowSpread(sent, received, Arrays.stream(sent).sum() - sent[me], 0);
        }
        long nvlink = 0;
        for (int rank = 0; rank < numRanks; rank++) {
            // The rank with this nvlRank has the token on every node that it reaches.
            nvlink += rank % topology.numNvlRanks() == topology.nvlRank() ? 0 : sent[rank];
        }
        MemorySegment rows = memory.asSlice(headers.sizeBytes());
        return new RowSpread(sent, received, nvlink, rdmaRows(rows, topology, numTokens));
    }

    private static long at(Region headers, int parity, int source, int word) {
        return parity * headers.stride0() + source * headers.stride1() + 8L * word;
    }

    private static int epoch(MemorySegment memory, long at) {
        return (int) memory.get(ValueLayout.JAVA_LONG, at);
    }

    /** What stands beside the epoch. */
    private static int word(MemorySegment memory, long at) {
        return (int) (memory.get(ValueLayout.JAVA_LONG, at) >>> 32);
    }

    private static long rdmaRows(MemorySegment ownRows, EpTopology topology, int numTokens) {
        long rdma = 0;
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            for (int token = 0; token < numTokens && node != topology.rdmaRank(); token++) {
                long at = ((long) node * numTokens + token) * InternodeRouting.rowsBytes(topology);
                boolean reached = false;
                for (int nvlRank = 0; nvlRank < topology.numNvlRanks(); nvlRank++) {
                    reached |= ownRows.get(ValueLayout.JAVA_INT, at + 4L * nvlRank) >= 0;
                }
                rdma += reached ? 1 : 0;
            }
        }
        return rdma;
    }

    /** Reports the dispatch. */
    void describeDispatch(RecordedFacts facts, int numTokens) {
        facts.tokens(numTokens, Arrays.stream(received).sum())
                .peers(sent, received)
                .links(nvlinkRows, rdmaRows);
    }

    /** Reports a combine, whose rows go back the way of its dispatch. */
    void describeCombine(RecordedFacts facts, int numTokens) {
        facts.tokens(numTokens, Arrays.stream(sent).sum())
                .peers(/* sent= */ received, /* received= */ sent)
                .links(nvlinkRows, rdmaRows);
    }
}
