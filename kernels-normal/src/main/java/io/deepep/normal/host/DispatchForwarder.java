package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Empties the rings of the other nodes: copies each token to its rows at the ranks of this node,
 * remembers them for combine, and gives the slots back. Sets the completion flags on behalf of the
 * remote sources.
 */
final class DispatchForwarder implements Role {
    private static final int UNKNOWN = -1;

    private final HostNormalState state;
    private final Routing routing;
    private final Config config;
    private final long dataBytes;
    private final long metaBytes;
    private final RdmaRings rings;
    private final HostHeap nvl;
    private final int numNodes;
    private final int numNvlRanks;
    private final int numChannels;
    private final int[] remaining;
    private final int[] position;
    private final int[] nextRow;
    private final int[] numClosed;
    private final int[] total;
    private int numOpen;
    private int blockedChannel;
    private int blockedNode;

    /**
     * A forwarder.
     *
     * @param dataBytes bytes of a row that are in use
     * @param metaBytes bytes of what travels beside it
     */
    DispatchForwarder(
            HostNormalState state, Routing routing, Config config, long dataBytes, long metaBytes) {
        this.state = state;
        this.routing = routing;
        this.config = config;
        this.dataBytes = dataBytes;
        this.metaBytes = metaBytes;
        this.rings = state.dispatchRings;
        this.nvl = state.context.nvl();
        this.numNodes = state.topology.numRdmaRanks();
        this.numNvlRanks = state.topology.numNvlRanks();
        this.numChannels = config.numChannels();
        this.remaining = new int[numChannels * numNodes];
        this.position = new int[numChannels * numNodes];
        this.nextRow = new int[numChannels * numNodes * numNvlRanks];
        this.numClosed = new int[numNodes];
        this.total = new int[numNodes];
    }

    void start() {
        Arrays.fill(remaining, UNKNOWN);
        Arrays.fill(numClosed, 0);
        Arrays.fill(total, 0);
        numOpen = numChannels * (numNodes - 1);
    }

    @Override
    public int doWork() {
        int done = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (node != state.topology.rdmaRank()) {
                    done += forward(channel, node);
                }
            }
        }
        return done;
    }

    private int forward(int channel, int node) {
        int at = channel * numNodes + node;
        if (remaining[at] == UNKNOWN && !readChannelMeta(channel, node)) {
            blockedChannel = channel;
            blockedNode = node;
            return 0;
        }
        if (position[at] == UNKNOWN) {
            return 0;
        }
        int forwarded = 0;
        while (remaining[at] > 0
                && forwarded < config.rdmaSendChunk()
                && rings.hasSlot(channel, node)) {
            copyToRows(channel, node);
            rings.consumed(channel, node, config.rdmaSendChunk());
            position[at]++;
            remaining[at]--;
            forwarded++;
        }
        if (remaining[at] == 0) {
            close(channel, node);
            return forwarded + 1;
        }
        if (forwarded == 0) {
            blockedChannel = channel;
            blockedNode = node;
        }
        return forwarded;
    }

    private boolean readChannelMeta(int channel, int node) {
        HostHeap rdma = state.context.rdma();
        long at = state.rdmaLayout.channelMeta().at(channel, node);
        if (rdma.flag(at)
                < state.exchange
                        .epoch()) { // acquire; pairs with writeChannelMeta in DispatchRdmaSender
            return false;
        }
        int ring = channel * numNodes + node;
        MemorySegment memory = rdma.local();
        remaining[ring] = (int) memory.get(ValueLayout.JAVA_LONG, at + 8);
        position[ring] = (int) memory.get(ValueLayout.JAVA_LONG, at + 16);
        total[node] += remaining[ring];
        for (int nvlRank = 0; nvlRank < numNvlRanks; nvlRank++) {
            int start = (int) memory.get(ValueLayout.JAVA_LONG, at + 24 + 8L * nvlRank);
            nextRow[ring * numNvlRanks + nvlRank] = routing.firstRow(node, nvlRank) + start;
        }
        return true;
    }

    private void copyToRows(int channel, int node) {
        int ring = channel * numNodes + node;
        MemorySegment source = rings.ownMemory();
        long slot = rings.readSlot(channel, node);
        long meta = slot + state.rdmaLayout.slotMetaOffset();
        int mask = source.get(ValueLayout.JAVA_INT, meta);
        Routing.ForwardedTokens memory = routing.forwarded(node);
        memory.put(position[ring], source.get(ValueLayout.JAVA_INT, meta + 4), mask);
        for (int rest = mask; rest != 0; rest &= rest - 1) {
            int nvlRank = Integer.numberOfTrailingZeros(rest);
            int row = nextRow[ring * numNvlRanks + nvlRank]++;
            MemorySegment target = nvl.of(state.nodeRank(nvlRank));
            MemorySegment.copy(
                    source, slot, target, state.nvlLayout.dispatchRows().at(row), dataBytes);
            MemorySegment.copy(
                    source, meta + 4, target, state.nvlLayout.recvMeta().at(row), metaBytes);
            memory.putRow(position[ring], nvlRank, row);
        }
    }

    /** All of a channel has come; after the last one the source's rows are complete. */
    private void close(int channel, int node) {
        rings.release(channel, node);
        position[channel * numNodes + node] = UNKNOWN;
        numOpen--;
        if (++numClosed[node] == numChannels) {
            routing.forwarded(node).count(total[node]);
            long flag =
                    state.nvlLayout
                            .dispatchFlags()
                            .at(state.topology.rankOf(node, state.topology.nvlRank()));
            for (int nvlRank = 0; nvlRank < numNvlRanks; nvlRank++) {
                nvl.signal(
                        state.nodeRank(nvlRank),
                        flag,
                        state.exchange.epoch()); // release; pairs with the flag in DispatchReceiver
            }
        }
    }

    @Override
    public boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public void idle(HostWait waiter) {
        int source = state.topology.rankOf(blockedNode, state.topology.nvlRank());
        long read = rings.numRead(blockedChannel, blockedNode);
        waiter.idle(source, "dispatch.rdma.rows", read + 1, read);
    }
}
