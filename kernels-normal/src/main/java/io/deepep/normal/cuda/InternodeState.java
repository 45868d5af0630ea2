package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.RingShape;
import io.deepep.normal.cuda.kernels.CallKernels;
import io.deepep.normal.cuda.kernels.InternodeStructs;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Region;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** What the operations of one rank share beyond one node: its RDMA buffer and its peers'. */
final class InternodeState {
    final NormalRdmaLayout layout;
    final CallKernels kernels;

    /** Those that look at {@link #rails}; null without them. */
    final CallKernels maskedKernels;

    private final EpTopology topology;
    private final int maxTokens;
    private final RdmaHeaps heaps;

    /** Null where a network reaches the peers. */
    private final DevicePool.Block peers;

    /** Who serves whom; null where no rank can be masked, because only peers are reached. */
    final RailTable rails;

    private final DevicePool.Block plan;
    private final DevicePool.Block blockCounts;
    private final DevicePool.Block blockBases;

    /**
     * Allocates scratch and tells the GPU where the peers are.
     *
     * @param state has everything that one node needs
     * @param heaps each a {@link NormalRdmaLayout}, zeroed
     * @param envelope what that is laid out for
     * @param masksTimedOut whether a rank that does not come is masked
     */
    InternodeState(CudaNormalState state, RdmaHeaps heaps, Config envelope, boolean masksTimedOut) {
        this.topology = state.topology;
        this.layout = NormalRdmaLayout.of(envelope, state.limits, topology);
        this.maxTokens = state.limits.maxTokens();
        this.heaps = heaps;
        this.kernels = kernels(state, "");
        DevicePool memory = state.memory;
        this.peers =
                heaps.library().isPresent() || heaps.queues() != 0
                        ? null
                        : memory.allocate((long) Long.BYTES * topology.numRdmaRanks());
        boolean mapped = peers != null && !heaps.addresses().contains(0L);
        boolean reached =
                mapped
                        || heaps.standIns().isPresent()
                        || heaps.library().map(NetworkLibrary::canMask).orElse(false);
        this.rails = reached ? new RailTable(state, heaps, masksTimedOut) : null;
        this.maskedKernels = reached ? kernels(state, CallKernels.MASKED) : null;
        this.plan = memory.allocateZeroed(InternodeStructs.PLAN.numBytes());
        this.blockCounts = memory.allocate(placesBytes(topology));
        // Places without a rank are loaded too, so that initcheck finds only what is used.
        this.blockBases = memory.allocateZeroed(placesBytes(topology));
        if (peers != null) {
            uploadPeers(state.stream);
        }
    }

    private CallKernels kernels(CudaNormalState state, String kind) {
        if (heaps.queues() != 0) {
            return state.kernels.acrossNodes(state.structs, kind + CallKernels.QUEUES);
        }
        return heaps.library()
                .map(library -> CallKernels.over(library, state.context, state.structs, kind))
                .orElseGet(() -> state.kernels.acrossNodes(state.structs, kind));
    }

    /** Whether ranks can be masked: this one reaches their stand-ins. */
    boolean canMask() {
        return rails != null;
    }

    /** What would let them be, to end an error's message; empty if nothing. */
    String cure() {
        if (heaps.queues() != 0) {
            return ", or with Network.ibgda().withMasks(true)";
        }
        return heaps.library().isPresent() ? ", or with Network.Nvshmem.withMasks(true)" : "";
    }

    private void uploadPeers(CudaStream stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment table = arena.allocate(ValueLayout.JAVA_LONG, topology.numRdmaRanks());
            for (int node = 0; node < topology.numRdmaRanks(); node++) {
                long peer = heaps.addresses().get(topology.rankOf(node, topology.nvlRank()));
                table.setAtIndex(ValueLayout.JAVA_LONG, node, peer);
            }
            stream.copy(peers.address(), table.address(), table.byteSize());
            stream.synchronize();
        }
    }

    /** {@code NodeRows} [blocks][nodes]. */
    private static long placesBytes(EpTopology topology) {
        return (long) KernelConstants.MAX_BLOCKS
                * topology.numRdmaRanks()
                * InternodeRouting.rowsBytes(topology);
    }

    /** Bytes that this allocates from a pool. */
    static long reservedBytes(EpTopology topology) {
        return 2 * placesBytes(topology)
                + (long) Long.BYTES * topology.numRdmaRanks()
                + RailTable.numBytes(topology)
                + InternodeStructs.PLAN.numBytes();
    }

    /**
     * Bytes of a dispatch's slot: a row of {@code rowStride} and its places. Links like rows that
     * begin on lines; networks do not mind, and need not carry what that takes.
     */
    int dispatchSlotBytes(int rowStride) {
        return (int)
                (peers == null
                        ? NormalRdmaLayout.sentBytes(topology, rowStride)
                        : NormalRdmaLayout.slotBytes(topology, rowStride));
    }

    /**
     * Fills the part of a launch's parameters that concerns other nodes.
     *
     * @param between an {@link InternodeStructs#INTERNODE}
     * @param slotBytes of a ring's slot
     * @param numTopk selections of a record, 0 for none
     */
    void fill(
            Params between, InternodeRouting routing, RingShape rings, int slotBytes, int numTopk) {
        fillNetwork(between.inner("network", NetworkStructs.NETWORK));
        fillCellsOfRail(between, "headers", layout.headers());
        fillCellsOfRail(between, "header_flags", layout.headerFlags());
        fillCellsOfRail(between, "endings", layout.endings());
        fillCells(between, "records", layout.records());
        fillCells(between, "record_flags", layout.recordFlags());
        fillCells(between, "slots", layout.slots());
        fillCells(between, "tails", layout.tails());
        fillCells(between, "totals", layout.totals());
        fillCells(between, "heads", layout.heads());
        between.set("header_bytes", layout.headerBytes())
                .set("plan", plan.address())
                .set("block_counts", blockCounts.address())
                .set("block_bases", blockBases.address())
                .set("own_rows", routing.ownRows().address())
                .set("forward_rows", routing.forwardRows().address())
                .set("source_tokens", routing.sourceTokens().address())
                .setInt("max_tokens", maxTokens)
                .setInt("num_ranks", topology.numRanks())
                .setInt("record_bytes", NormalRdmaLayout.recordBytes(topology, numTopk))
                .setInt("slot_bytes", slotBytes)
                .setInt("num_channels", rings.numChannels())
                .setInt("num_slots", rings.numSlots())
                .setInt("send_chunk", rings.sendChunk())
                .setInt("num_home_blocks", rings.numHomeBlocks())
                .setInt("node_places", NormalRdmaLayout.nodeRows(topology));
    }

    private void fillNetwork(Params network) {
        network.set("base", heaps.addresses().get(topology.rank()))
                .set("peers", peers == null ? 0 : peers.address())
                .set("outbox", layout.outbox().offset())
                .set("queues", heaps.queues())
                .set("rails", rails == null ? 0 : rails.address())
                .setInt("node", topology.rdmaRank())
                .setInt("num_nodes", topology.numRdmaRanks());
        heaps.library()
                .ifPresent(
                        library ->
                                network.setInt("first_pe", library.firstPe())
                                        .setInt("pe_stride", library.peStride()));
    }

    /** A region with a cell for each node. */
    private static void fillCells(Params between, String field, Region region) {
        between.inner(field, NetworkStructs.CELLS)
                .set("offset", region.offset())
                .set("stride", region.stride0());
    }

    /** A region with a cell for each rank, of which a rail uses its own. */
    private void fillCellsOfRail(Params between, String field, Region region) {
        between.inner(field, NetworkStructs.CELLS)
                .set("offset", region.at(topology.nvlRank()))
                .set("stride", topology.numNvlRanks() * region.stride0());
    }
}
