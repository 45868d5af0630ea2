package io.deepep.normal.host;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.Tensor;
import io.deepep.host.HostWait;
import io.deepep.host.RowSum;
import java.lang.foreign.MemorySegment;

/**
 * Brings this rank's tokens home: for each one the rows of this node in the order of nvlRanks, then
 * what each other node summed, in the order of nodes, then the biases; fp32 accumulation, rounded
 * once. The order never depends on what arrives first.
 */
final class CombineReducer implements Role {
    private static final int TOKENS_PER_TURN = 16;

    private final HostNormalState state;
    private final Routing routing;
    private final Config config;
    private final CombineSources sources;
    private final int hidden;
    private final int numWeights;
    private final Tensor bias0;
    private final Tensor bias1;
    private final Tensor out;
    private final Tensor weightsOut;
    private final RdmaRings rings;
    private final RowSum sum;
    private final RowSum weightSum;
    private final int numNodes;
    private final int numChannels;
    private final int[] next;
    private int numOpen;
    private int blockedChannel;
    private int blockedNode;

    CombineReducer(
            HostNormalState state,
            HostDispatchHandle handle,
            Config config,
            CombineSources sources,
            CombinePlan plan,
            Tensor out,
            Tensor weightsOut) {
        this.state = state;
        this.routing = handle.routing();
        this.config = config;
        this.sources = sources;
        this.hidden = handle.hidden();
        this.numWeights = weightsOut == null ? 0 : handle.numTopk();
        this.bias0 = plan.bias0();
        this.bias1 = plan.bias1();
        this.out = out;
        this.weightsOut = weightsOut;
        this.rings = state.combineRings;
        this.numNodes = state.topology.numRdmaRanks();
        int maxRows = state.topology.numNvlRanks() + numNodes + 2;
        this.sum = new RowSum(maxRows, hidden);
        this.weightSum = new RowSum(maxRows, 0);
        this.numChannels = config.numChannels();
        this.next = new int[numChannels];
    }

    void start() {
        numOpen = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            next[channel] = Routing.channelStart(routing.numTokens(), channel, numChannels);
            numOpen += next[channel] == end(channel) ? 0 : 1;
        }
    }

    private int end(int channel) {
        return Routing.channelStart(routing.numTokens(), channel + 1, numChannels);
    }

    @Override
    public int doWork() {
        int done = 0;
        for (int channel = 0; channel < numChannels; channel++) {
            int end = end(channel);
            if (next[channel] < end) {
                int turnEnd = Math.min(end, next[channel] + TOKENS_PER_TURN);
                while (next[channel] < turnEnd && hasArrived(channel, next[channel])) {
                    reduce(channel, next[channel]++);
                    done++;
                }
                if (next[channel] == end) {
                    close(channel);
                }
            }
        }
        return done;
    }

    /** Whether every other node has sent its part of {@code token}. */
    private boolean hasArrived(int channel, int token) {
        for (int node = 0; node < numNodes; node++) {
            if (comesFrom(token, node) && !rings.hasSlot(channel, node)) {
                blockedChannel = channel;
                blockedNode = node;
                return false;
            }
        }
        return true;
    }

    private boolean comesFrom(int token, int node) {
        return node != state.topology.rdmaRank() && routing.scan().mask(token, node) != 0;
    }

    private void reduce(int channel, int token) {
        sum.clear();
        weightSum.clear();
        for (int mask = routing.nodeMask(token); mask != 0; mask &= mask - 1) {
            int nvlRank = Integer.numberOfTrailingZeros(mask);
            int row = routing.row(token, nvlRank);
            sources.addRow(sum, nvlRank, row);
            sources.addWeights(weightSum, nvlRank, row);
        }
        MemorySegment own = rings.ownMemory();
        for (int node = 0; node < numNodes; node++) {
            if (comesFrom(token, node)) {
                long slot = rings.readSlot(channel, node);
                sum.add(own, slot);
                weightSum.add(own, slot + state.rdmaLayout.slotMetaOffset());
            }
        }
        addBias(bias0, token);
        addBias(bias1, token);
        sum.store(out.segment(), 2L * token * out.stride(0), hidden);
        if (numWeights > 0) {
            weightSum.storeFloats(weightsOut.segment(), 4L * token * numWeights, numWeights);
        }
        for (int node = 0; node < numNodes; node++) {
            if (comesFrom(token, node)) {
                rings.consumed(channel, node, config.rdmaSendChunk());
            }
        }
    }

    private void close(int channel) {
        numOpen--;
        for (int node = 0; node < numNodes; node++) {
            if (node != state.topology.rdmaRank()) {
                rings.release(channel, node);
            }
        }
    }

    private void addBias(Tensor bias, int token) {
        if (bias != null) {
            sum.add(bias.segment(), 2L * token * bias.stride(0));
        }
    }

    @Override
    public boolean isDone() {
        return numOpen == 0;
    }

    @Override
    public void idle(HostWait waiter) {
        long read = rings.numRead(blockedChannel, blockedNode);
        waiter.idle(
                state.topology.rankOf(blockedNode, state.topology.nvlRank()),
                "combine.rdma.rows",
                read + 1,
                read);
    }
}
