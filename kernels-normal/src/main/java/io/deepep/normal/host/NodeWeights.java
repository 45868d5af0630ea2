package io.deepep.normal.host;

import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.RowSum;
import io.deepep.normal.RingShape;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;

/**
 * The top-k weights of a combine: those of peers' tokens are summed over this node and sent as one
 * range for each of the peer's home blocks, then this rank's own are summed over all nodes:
 * combine_weights of internode_sums.cuh in Java, and sum_weights on one node.
 */
final class NodeWeights {
    private final HostNormalState state;
    private final Routing routing;
    private final OfferedRows offered;
    private final HostHeap rdma;
    private final MemorySegment out;
    private final int numTopk;
    private final int numBlocks;
    private final Region[] sums;
    private final Region flags;
    private final RowSum sum;

    NodeWeights(
            HostNormalState state,
            HostDispatchHandle handle,
            RingShape shape,
            OfferedRows offered,
            Tensor out) {
        this.state = state;
        this.routing = handle.routing();
        this.offered = offered;
        this.rdma = state.context.rdma();
        this.out = out.segment();
        this.numTopk = handle.numTopk();
        this.numBlocks = shape == null ? 1 : shape.numHomeBlocks();
        this.flags = state.rdmaLayout.recordFlags();
        this.sums = new Region[shape == null ? 0 : state.topology.numRdmaRanks()];
        for (int node = 0; node < sums.length; node++) {
            sums[node] = state.rdmaLayout.records().cell(node).of((long) Float.BYTES * numTopk);
        }
        this.sum = new RowSum(state.topology.numNvlRanks() + state.topology.numRdmaRanks(), 0);
    }

    void run() {
        for (int node = 0; node < sums.length; node++) {
            if (state.isRemote(node)) {
                send(node);
            }
        }
        for (int node = 0; node < sums.length; node++) {
            if (state.isRemote(node)) {
                await(node);
            }
        }
        for (int token = 0; token < routing.numTokens(); token++) {
            reduce(token);
        }
    }

    private void send(int node) {
        int peer = state.peerOn(node);
        MemorySegment target = rdma.of(peer);
        Region cell = sums[state.topology.rdmaRank()];
        int numTokens = routing.sourceTokens(node);
        int each = Math.ceilDiv(numTokens, numBlocks);
        for (int token = 0; token < numTokens; token++) {
            sum.clear();
            offered.addWeights(sum, routing.forwarded(), node, token);
            sum.storeFloats(target, cell.at(token), numTopk);
            if ((token + 1) % each == 0 || token + 1 == numTokens) {
                long flag = flags.at(state.topology.rdmaRank(), token / each);
                long epoch = Integer.toUnsignedLong(state.exchange.epoch());
                rdma.signal(peer, flag, epoch); // release; pairs with await
            }
        }
    }

    private void await(int node) {
        int numTokens = routing.numTokens();
        int each = Math.max(1, Math.ceilDiv(numTokens, numBlocks));
        for (int block = 0; block * each < numTokens; block++) {
            // acquire; pairs with send
            state.exchange.await(rdma, flags.at(node, block), state.peerOn(node), FaultPhase.META);
        }
    }

    /** Rows of this node by rank, then nodes in order. */
    private void reduce(int token) {
        sum.clear();
        offered.addWeights(sum, routing.own(), state.topology.rdmaRank(), token);
        if (sums.length > 0) {
            sum.storeFloats(out, (long) Float.BYTES * token * numTopk, numTopk);
            sum.clear();
            sum.add(out, (long) Float.BYTES * token * numTopk);
        }
        for (int node = 0; node < sums.length; node++) {
            if (routing.crosses(token, node)) {
                sum.add(rdma.local(), sums[node].at(token));
            }
        }
        sum.storeFloats(out, (long) Float.BYTES * token * numTopk, numTopk);
    }
}
