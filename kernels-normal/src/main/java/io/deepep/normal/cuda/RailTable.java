package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.normal.Masks;
import io.deepep.normal.Rails;
import io.deepep.normal.cuda.kernels.InternodeStructs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
    private final PinnedSlots.Slot slot;
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
        this.slot = state.slots.take(this, numBytes(topology), null);
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
        MemorySegment to = slot.memory().asSlice(0, numBytes(topology));
        Rails rails = masks.rails();
        setLong(to, TABLE.offset("forwarders"), address() + forwarders);
        setLong(to, TABLE.offset("homes"), address() + homes);
        setLong(to, TABLE.offset("ranks"), address() + ranks);
        setInt(to, TABLE.offset("num_nodes"), topology.numRdmaRanks());
        setInt(to, TABLE.offset("num_cells"), Rails.numCells(topology));
        setInt(to, TABLE.offset("num_ranks"), topology.numRanks());
        setInt(to, TABLE.offset("own"), topology.rank());
        setInt(to, TABLE.offset("first"), firstTakingPart(masks));
        setInt(to, TABLE.offset("ends_together"), endsTogether ? 1 : 0);
        writeEnds(to.asSlice(forwarders), rails.forwarders());
        writeEnds(to.asSlice(homes), rails.homes());
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            MemorySegment entry = to.asSlice(ranks + rank * RANK.numBytes());
            writeWay(entry.asSlice(RANK.offset("way")), rank);
            setInt(entry, RANK.offset("is_masked"), masks.contains(rank) ? 1 : 0);
            setInt(entry, RANK.offset("is_reached"), rails.reaches(rank) ? 1 : 0);
            setInt(entry, RANK.offset("is_contact"), rails.isContact(rank) ? 1 : 0);
        }
        stream.copy(address(), slot.deviceAddress(), numBytes(topology));
        stream.synchronize();
    }

    private void writeEnds(MemorySegment to, Rails.Ends ends) {
        for (int place = 0; place < ends.size(); place++) {
            MemorySegment entry = to.asSlice(place * END.numBytes());
            boolean used = ends.isUsed(place);
            if (used) {
                writeWay(entry.asSlice(END.offset("way")), ends.rank(place));
            }
            setInt(entry, END.offset("rank"), used ? ends.rank(place) : -1);
            setInt(entry, END.offset("cell"), used ? ends.cell(place) : 0);
        }
    }

    private void writeWay(MemorySegment to, int rank) {
        RailWay way = RailWay.to(rank, topology, heaps);
        setLong(to, WAY.offset("reach"), way.reach());
        setInt(to, WAY.offset("place"), way.place());
    }

    private int firstTakingPart(Masks masks) {
        return IntStream.range(0, topology.numRanks())
                .filter(rank -> !masks.contains(rank))
                .findFirst()
                .orElseThrow();
    }

    private static void setLong(MemorySegment to, long offset, long value) {
        to.set(ValueLayout.JAVA_LONG, offset, value);
    }

    private static void setInt(MemorySegment to, long offset, int value) {
        to.set(ValueLayout.JAVA_INT, offset, value);
    }
}
