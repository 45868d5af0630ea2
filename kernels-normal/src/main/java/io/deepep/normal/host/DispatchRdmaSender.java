package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Puts each token once into a ring of every other node it goes to, at the rank with this rank's
 * nvlRank. The tokens are divided among the channels in order; each (channel, node) advances by
 * itself, so a full ring holds up nobody else.
 */
final class DispatchRdmaSender implements Role {
    private final HostNormalState state;
    private final Routing routing;
    private final TokenRows tokens;
    private final Config config;
    private final RdmaRings rings;
    private final int numNodes;
    private final int numChannels;
    private final int[] next;
    private final int[] starts;
    private int numOpen;
    private int blockedChannel;
    private int blockedNode;

    DispatchRdmaSender(HostNormalState state, Routing routing, TokenRows tokens, Config config) {
        this.state = state;
        this.routing = routing;
        this.tokens = tokens;
        this.config = config;
        this.rings = state.dispatchRings;
        this.numNodes = state.topology.numRdmaRanks();
        this.numChannels = config.numChannels();
        this.next = new int[numChannels * numNodes];
        this.starts = new int[EpTopology.MAX_NVL_RANKS];
    }

    /** Tells the forwarders what each channel will bring. */
    void start() {
        numOpen = 0;
        for (int node = 0; node < numNodes; node++) {
            if (node != state.topology.rdmaRank()) {
                announce(node);
            }
        }
    }

    private void announce(int node) {
        Arrays.fill(starts, 0);
        int earlier = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            int begin = Routing.channelStart(routing.numTokens(), channel, numChannels);
            int end = Routing.channelStart(routing.numTokens(), channel + 1, numChannels);
            next[channel * numNodes + node] = begin;
            numOpen++;
            int count = 0;
            for (int token = begin; token < end; token++) {
                count += routing.scan().mask(token, node) == 0 ? 0 : 1;
            }
            writeChannelMeta(channel, node, count, earlier);
            for (int token = begin; token < end; token++) {
                for (int mask = routing.scan().mask(token, node); mask != 0; mask &= mask - 1) {
                    starts[Integer.numberOfTrailingZeros(mask)]++;
                }
            }
            earlier += count;
        }
    }

    private void writeChannelMeta(int channel, int node, int count, int earlier) {
        HostHeap rdma = state.context.rdma();
        int peer = state.topology.rankOf(node, state.topology.nvlRank());
        MemorySegment memory = rdma.of(peer);
        long at = state.rdmaLayout.channelMeta().at(channel, state.topology.rdmaRank());
        memory.set(ValueLayout.JAVA_LONG, at + 8, count);
        memory.set(ValueLayout.JAVA_LONG, at + 16, earlier);
        for (int nvlRank = 0; nvlRank < starts.length; nvlRank++) {
            memory.set(ValueLayout.JAVA_LONG, at + 24 + 8L * nvlRank, starts[nvlRank]);
        }
        rdma.signal(
                peer,
                at,
                state.exchange.epoch()); // release; pairs with the flag in DispatchForwarder
    }

    @Override
    public int doWork() {
        int sent = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (node != state.topology.rdmaRank()) {
                    sent += send(channel, node);
                }
            }
        }
        return sent;
    }

    /**
     * Sends up to a chunk of tokens; what was put is announced before this rank turns to other
     * work.
     */
    private int send(int channel, int node) {
        int at = channel * numNodes + node;
        int end = Routing.channelStart(routing.numTokens(), channel + 1, numChannels);
        if (next[at] > end) {
            return 0;
        }
        int sent = 0;
        int token = next[at];
        for (; token < end && sent < config.rdmaSendChunk(); token++) {
            int mask = routing.scan().mask(token, node);
            if (mask == 0) {
                continue;
            }
            if (!rings.hasRoom(channel, node, config.rdmaRecvChunk())) {
                blockedChannel = channel;
                blockedNode = node;
                break;
            }
            put(channel, node, token, mask);
            sent++;
        }
        next[at] = token;
        rings.publish(channel, node);
        if (token == end) {
            next[at] = end + 1;
            numOpen--;
            return sent + 1;
        }
        return sent;
    }

    private void put(int channel, int node, int token, int mask) {
        MemorySegment target = rings.peerMemory(node);
        long slot = rings.writeSlot(channel, node);
        long meta = slot + state.rdmaLayout.slotMetaOffset();
        tokens.prepareMeta(token);
        tokens.writeRow(token, target, slot);
        target.set(ValueLayout.JAVA_INT, meta, mask);
        tokens.writeMeta(target, meta + 4);
        rings.wrote(channel, node, config.rdmaSendChunk());
    }

    @Override
    public boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public void idle(HostWait waiter) {
        waiter.idle(
                state.topology.rankOf(blockedNode, state.topology.nvlRank()),
                "dispatch.rdma.credits",
                rings.numWritten(blockedChannel, blockedNode) - config.rdmaRecvChunk() + 1,
                rings.head(blockedChannel, blockedNode));
    }
}
