package io.deepep.normal.host.internode;

import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.RowSum;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;
import io.deepep.normal.RingShape;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.node.OfferedRows;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.normal.host.routing.Routing;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;

/**
 * The top-k weights of a combine: those of tokens that this rank forwarded are summed over this
 * node and sent as one range for each of the owner's home blocks, then this rank's own are summed
 * over all nodes: combine_weights of internode_sums.cuh in Java, and sum_weights on one node.
 */
public final class NodeWeights {
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

    public NodeWeights(
            HostNormalState state,
            HostDispatchHandle handle,
            RingShape shape,
            OfferedRows offered,
            Tensor out) {
        this.state = state;
        this.routing = handle.routing;
        this.offered = offered;
        this.rdma = state.context.rdma();
        this.out = out.segment();
        this.numTopk = handle.numTopk();
        this.numBlocks =
                shape == null ? 1 : Math.min(shape.numHomeBlocks(), NormalRdmaLayout.MAX_BLOCKS);
        this.flags = state.rdmaLayout.recordFlags();
        this.sums = new Region[shape == null ? 0 : state.topology.numRdmaRanks()];
        for (int node = 0; node < sums.length; node++) {
            sums[node] = state.rdmaLayout.records().cell(node).of((long) Float.BYTES * numTopk);
        }
        this.sum = new RowSum(state.topology.numNvlRanks() + state.topology.numRdmaRanks(), 0);
    }

    public void run() {
        Rails rails = state.rails();
        for (int place = 0; place < rails.homes().size(); place++) {
            if (rails.homes().isUsed(place)) {
                send(place, rails.homes());
            }
        }
        for (int node = 0; node < rails.forwarders().size(); node++) {
            if (rails.forwarders().isUsed(node)) {
                await(node, rails.forwarders().rank(node));
            }
        }
        for (int token = 0; token < routing.numTokens; token++) {
            reduce(token);
        }
    }

    private void send(int place, Rails.Ends homes) {
        int peer = homes.rank(place);
        MemorySegment target = rdma.of(peer);
        Region cell = sums[homes.cell(place)];
        int numTokens = routing.sourceTokens(place);
        int each = Math.ceilDiv(numTokens, numBlocks);
        for (int token = 0; token < numTokens; token++) {
            sum.clear();
            offered.addWeights(sum, routing.forwarded, place, token);
            sum.storeFloats(target, cell.at(token), numTopk);
            if ((token + 1) % each == 0 || token + 1 == numTokens) {
                long flag = flags.at(homes.cell(place), token / each);
                long epoch = Integer.toUnsignedLong(state.exchange.epoch());
                rdma.signal(peer, flag, epoch); // release; pairs with await
            }
        }
    }

    private void await(int node, int forwarder) {
        int numTokens = routing.numTokens;
        int each = Math.max(1, Math.ceilDiv(numTokens, numBlocks));
        for (int block = 0; block * each < numTokens; block++) {
            // acquire; pairs with send
            state.exchange.await(rdma, flags.at(node, block), forwarder, FaultPhase.META);
        }
    }

    /** Rows of this node by rank, then nodes in order. */
    private void reduce(int token) {
        sum.clear();
        offered.addWeights(sum, routing.own, state.topology.rdmaRank(), token);
        for (int node = 0; node < sums.length; node++) {
            if (routing.crosses(token, node)) {
                sum.add(rdma.local(), sums[node].at(token));
            }
        }
        sum.storeFloats(out, (long) Float.BYTES * token * numTopk, numTopk);
    }
}
