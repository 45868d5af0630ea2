package io.deepep.normal.host;

import io.deepep.EpTopology;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.Region;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The start of every operation: each rank's header reaches all ranks, which is also the barrier
 * that makes the rows of the operation before free for reuse.
 *
 * <p>Within a node a header is written straight into the peers' NVL slots. To another node it goes
 * by RDMA to the rank with the same nvlRank, which relays it over NVL. Slots alternate by parity of
 * the epoch: a rank can publish epoch e+2 only after all ranks have published e+1, that is, have
 * read e.
 */
final class HeaderExchange {
    private static final long FLAG_BYTES = 8;

    private final EpTopology topology;
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostWait waiter;
    private final Region nvlSlots;
    private final Region rdmaSlots;
    private final MemorySegment mine;
    private final NormalHeaders[] headers = new NormalHeaders[2];
    private final boolean[] relayed;
    private long epoch;
    private int numSeen;

    HeaderExchange(HostContext context, NormalNvlLayout nvlLayout, NormalRdmaLayout rdmaLayout) {
        topology = context.topology();
        nvl = context.nvl();
        rdma = context.rdma();
        waiter = context.waiter();
        nvlSlots = nvlLayout.headers();
        rdmaSlots = rdmaLayout.headers();
        mine = Arena.ofAuto().allocate(nvlSlots.recordBytes(), 8);
        relayed = new boolean[topology.numRdmaRanks()];
        for (int parity = 0; parity < 2; parity++) {
            MemorySegment slots = nvl.local().asSlice(nvlSlots.at(parity), nvlSlots.stride0());
            headers[parity] = new NormalHeaders(slots, nvlSlots.recordBytes(), topology.numRanks());
        }
    }

    /** Number of the latest operation. */
    long epoch() {
        return epoch;
    }

    /** Begins this rank's header. */
    void start(int operation, int numBytes) {
        mine.fill((byte) 0);
        set(NormalHeader.OPERATION, operation);
        set(NormalHeader.NUM_BYTES, numBytes);
    }

    void set(int field, long value) {
        mine.set(ValueLayout.JAVA_LONG, NormalHeader.fieldOffset(field), value);
    }

    /** Copies counts into this rank's header. */
    void setCounts(int[] tokensPerRank, int[] selectionsPerExpert) {
        MemorySegment.copy(
                tokensPerRank,
                0,
                mine,
                ValueLayout.JAVA_INT,
                NormalHeader.tokensOffset(0),
                tokensPerRank.length);
        MemorySegment.copy(
                selectionsPerExpert,
                0,
                mine,
                ValueLayout.JAVA_INT,
                NormalHeader.selectionsOffset(topology.numRanks(), 0),
                selectionsPerExpert.length);
    }

    /** Publishes this rank's header and waits for all others'. */
    NormalHeaders exchange(String phase) {
        epoch++;
        int parity = (int) (epoch & 1);
        publish(parity);
        numSeen = 0;
        for (int node = 0; node < relayed.length; node++) {
            relayed[node] = node == topology.rdmaRank();
        }
        waiter.start();
        while (!isComplete(parity)) {
            if (relay(parity)) {
                waiter.progress();
            } else {
                idle(parity, phase);
            }
        }
        return headers[parity];
    }

    private void publish(int parity) {
        long numBytes =
                mine.get(ValueLayout.JAVA_LONG, NormalHeader.fieldOffset(NormalHeader.NUM_BYTES));
        copyToNode(mine, 0, numBytes, parity, topology.rank());
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            if (node != topology.rdmaRank()) {
                int peer = topology.rankOf(node, topology.nvlRank());
                long slot = rdmaSlots.at(parity, topology.rdmaRank());
                MemorySegment.copy(
                        mine, FLAG_BYTES, rdma.of(peer), slot + FLAG_BYTES, numBytes - FLAG_BYTES);
                rdma.signal(peer, slot, epoch); // release; pairs with the flag in relay
            }
        }
    }

    private void copyToNode(
            MemorySegment source, long offset, long numBytes, int parity, int sourceRank) {
        long slot = nvlSlots.at(parity, sourceRank);
        for (int nvlRank = 0; nvlRank < topology.numNvlRanks(); nvlRank++) {
            int peer = topology.rankOf(topology.rdmaRank(), nvlRank);
            MemorySegment.copy(
                    source,
                    offset + FLAG_BYTES,
                    nvl.of(peer),
                    slot + FLAG_BYTES,
                    numBytes - FLAG_BYTES);
            nvl.signal(peer, slot, epoch); // release; pairs with the flag in hasArrived
        }
    }

    /** Passes headers of other nodes on to this node; true if there was one. */
    private boolean relay(int parity) {
        boolean worked = false;
        for (int node = 0; node < relayed.length; node++) {
            if (!relayed[node] && rdma.flag(rdmaSlots.at(parity, node)) >= epoch) {
                long slot = rdmaSlots.at(parity, node);
                long numBytes =
                        rdma.local()
                                .get(
                                        ValueLayout.JAVA_LONG,
                                        slot + NormalHeader.fieldOffset(NormalHeader.NUM_BYTES));
                copyToNode(
                        rdma.local(),
                        slot,
                        numBytes,
                        parity,
                        topology.rankOf(node, topology.nvlRank()));
                relayed[node] = true;
                worked = true;
            }
        }
        return worked;
    }

    private boolean isComplete(int parity) {
        while (numSeen < topology.numRanks() && hasArrived(parity, numSeen)) {
            numSeen++;
        }
        return numSeen
                == topology
                        .numRanks(); // this rank's own slots are among those that it relays into:
        // all is relayed
    }

    private boolean hasArrived(int parity, int rank) {
        return nvl.flag(nvlSlots.at(parity, rank)) >= epoch;
    }

    /** Waits for a rank; one of this node first, because a missing one cannot relay either. */
    private void idle(int parity, String phase) {
        int missing = numSeen;
        for (int nvlRank = topology.numNvlRanks() - 1; nvlRank >= 0; nvlRank--) {
            int peer = topology.rankOf(topology.rdmaRank(), nvlRank);
            missing = hasArrived(parity, peer) ? missing : peer;
        }
        waiter.idle(missing, phase, epoch, nvl.flag(nvlSlots.at(parity, missing)));
    }
}
