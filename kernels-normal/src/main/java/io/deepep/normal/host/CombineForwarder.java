package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.host.HostWait;
import io.deepep.host.RowSum;
import java.lang.foreign.MemorySegment;

/**
 * Reduces within the node for remote owners: sums the node's rows of each token that this rank
 * forwarded in the dispatch, in the order of nvlRanks, rounds to BF16 and puts the row into the
 * owner's ring.
 */
final class CombineForwarder implements Role {
    private final HostNormalState state;
    private final Routing routing;
    private final Config config;
    private final CombineSources sources;
    private final int hidden;
    private final int numWeights;
    private final RdmaRings rings;
    private final RowSum sum;
    private final int numNodes;
    private final int numChannels;
    private final int[] next;
    private final int[] end;
    private int numOpen;
    private int blockedChannel;
    private int blockedNode;

    /**
     * A forwarder.
     *
     * @param numWeights weights per token to sum, 0 for none
     */
    CombineForwarder(
            HostNormalState state,
            HostDispatchHandle handle,
            Config config,
            CombineSources sources,
            int numWeights) {
        this.state = state;
        this.routing = handle.routing();
        this.config = config;
        this.sources = sources;
        this.hidden = handle.hidden();
        this.numWeights = numWeights;
        this.rings = state.combineRings;
        this.sum = new RowSum(state.topology.numNvlRanks(), handle.hidden());
        this.numNodes = state.topology.numRdmaRanks();
        this.numChannels = config.numChannels();
        this.next = new int[numChannels * numNodes];
        this.end = new int[numChannels * numNodes];
    }

    void start() {
        numOpen = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (node != state.topology.rdmaRank()) {
                    Routing.ForwardedTokens tokens = routing.forwarded(node);
                    int total = tokens.numSourceTokens();
                    int at = channel * numNodes + node;
                    next[at] = tokens.positionOf(Routing.channelStart(total, channel, numChannels));
                    end[at] =
                            tokens.positionOf(
                                    Routing.channelStart(total, channel + 1, numChannels));
                    numOpen += next[at] == end[at] ? 0 : 1;
                }
            }
        }
    }

    @Override
    public int doWork() {
        int done = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            for (int node = 0; node < numNodes; node++) {
                if (node != state.topology.rdmaRank()
                        && next[channel * numNodes + node] < end[channel * numNodes + node]) {
                    done += reduce(channel, node);
                }
            }
        }
        return done;
    }

    private int reduce(int channel, int node) {
        int at = channel * numNodes + node;
        int first = next[at];
        int turnEnd = Math.min(end[at], first + config.rdmaSendChunk());
        while (next[at] < turnEnd && rings.hasRoom(channel, node, config.rdmaRecvChunk())) {
            put(channel, node, next[at]++);
        }
        rings.publish(channel, node);
        if (next[at] == end[at]) {
            numOpen--;
        } else if (next[at] == first) {
            blockedChannel = channel;
            blockedNode = node;
        }
        return next[at] - first;
    }

    private void put(int channel, int node, int position) {
        Routing.ForwardedTokens tokens = routing.forwarded(node);
        MemorySegment target = rings.peerMemory(node);
        long slot = rings.writeSlot(channel, node);
        sum.clear();
        for (int mask = tokens.mask(position); mask != 0; mask &= mask - 1) {
            int nvlRank = Integer.numberOfTrailingZeros(mask);
            sources.addRow(sum, nvlRank, tokens.row(position, nvlRank));
        }
        sum.store(target, slot, hidden);
        if (numWeights > 0) {
            sum.clear();
            for (int mask = tokens.mask(position); mask != 0; mask &= mask - 1) {
                int nvlRank = Integer.numberOfTrailingZeros(mask);
                sources.addWeights(sum, nvlRank, tokens.row(position, nvlRank));
            }
            sum.storeFloats(target, slot + state.rdmaLayout.slotMetaOffset(), numWeights);
        }
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
                "combine.rdma.credits",
                rings.numWritten(blockedChannel, blockedNode) - config.rdmaRecvChunk() + 1,
                rings.head(blockedChannel, blockedNode));
    }
}
