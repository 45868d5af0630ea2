package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.normal.Masks;
import io.deepep.normal.Rails;
import io.deepep.normal.cuda.kernels.InternodeStructs;
import java.lang.foreign.Arena;
import java.util.stream.IntStream;

/**
 * {@link Rails} in the memory of a GPU: the {@code RailTable} that kernels look at while ranks may
 * be masked, with the tables that it names behind it.
 */
final class RailTable {
    private static final KernelStruct TABLE = InternodeStructs.RAIL_TABLE;
    private static final KernelStruct END = InternodeStructs.RAIL_END;
    private static final KernelStruct RANK = InternodeStructs.RAIL_RANK;
    private static final KernelStruct WAY = InternodeStructs.RAIL_WAY;

    private final EpTopology topology;
    private final RdmaHeaps heaps;
    private final boolean endsTogether;
    private final CudaStream stream;
    private final DevicePool.Block block;
    private final long forwarders;
    private final long homes;
    private final long ranks;

    /**
     * A table without masked ranks.
     *
     * @param heaps every rank's network memory, as this one reaches it
     * @param endsTogether whether all nodes tell each other how each call ended
     */
    RailTable(CudaNormalState state, RdmaHeaps heaps, boolean endsTogether) {
        this.topology = state.topology;
        this.heaps = heaps;
        this.endsTogether = endsTogether;
        this.stream = state.stream;
        this.forwarders = TABLE.numBytes();
        this.homes = forwarders + topology.numRdmaRanks() * END.numBytes();
        this.ranks = homes + Rails.numCells(topology) * END.numBytes();
        this.block = state.memory.allocate(numBytes(topology));
        write(new Masks(topology));
    }

    /** Bytes that this allocates from a pool. */
    static long numBytes(EpTopology topology) {
        long ends = (long) topology.numRdmaRanks() + Rails.numCells(topology);
        return TABLE.numBytes() + ends * END.numBytes() + topology.numRanks() * RANK.numBytes();
    }

    long address() {
        return block.address();
    }

    /** Writes who serves whom, after all work of the stream. */
    void write(Masks masks) {
        stream.synchronize();
        Rails rails = masks.rails();
        try (Arena arena = Arena.ofConfined()) {
            KernelParams all = KernelParams.struct(arena, numBytes(topology));
            new Params(TABLE, all)
                    .set("forwarders", address() + forwarders)
                    .set("homes", address() + homes)
                    .set("ranks", address() + ranks)
                    .setInt("num_nodes", topology.numRdmaRanks())
                    .setInt("num_cells", Rails.numCells(topology))
                    .setInt("num_ranks", topology.numRanks())
                    .setInt("own", topology.rank())
                    .setInt("first", firstTakingPart(masks))
                    .setInt("ends_together", endsTogether ? 1 : 0);
            writeEnds(all, forwarders, rails.forwarders());
            writeEnds(all, homes, rails.homes());
            for (int rank = 0; rank < topology.numRanks(); rank++) {
                Params entry = new Params(RANK, all, ranks + rank * RANK.numBytes());
                writeWay(entry.inner("way", WAY), rank);
                entry.setInt("is_masked", masks.contains(rank) ? 1 : 0)
                        .setInt("is_reached", rails.reaches(rank) ? 1 : 0)
                        .setInt("is_contact", rails.isContact(rank) ? 1 : 0);
            }
            stream.copy(address(), all.segment().address(), numBytes(topology));
            stream.synchronize();
        }
    }

    private void writeEnds(KernelParams all, long at, Rails.Ends ends) {
        for (int place = 0; place < ends.size(); place++) {
            Params entry = new Params(END, all, at + place * END.numBytes());
            boolean used = ends.isUsed(place);
            if (used) {
                writeWay(entry.inner("way", WAY), ends.rank(place));
            }
            entry.setInt("rank", used ? ends.rank(place) : -1)
                    .setInt("cell", used ? ends.cell(place) : 0);
        }
    }

    private void writeWay(Params to, int rank) {
        RailWay way = RailWay.to(rank, topology, heaps);
        to.set("reach", way.reach()).setInt("place", way.place());
    }

    private int firstTakingPart(Masks masks) {
        return IntStream.range(0, topology.numRanks())
                .filter(rank -> !masks.contains(rank))
                .findFirst()
                .orElseThrow();
    }
}
