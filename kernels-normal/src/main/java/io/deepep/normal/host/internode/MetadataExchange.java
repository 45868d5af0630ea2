package io.deepep.normal.host.internode;

import io.deepep.host.HostHeap;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.node.TokenMetadata;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.normal.host.routing.NodeRows;
import io.deepep.normal.host.routing.Routing;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What goes ahead of the rows of a new dispatch: experts and weights of each token to the ranks
 * that receive it. Those on other nodes get them by way of the forwarder there, as records: a
 * token's rows on that node, then its experts and weights. It keeps the rows, by which it also
 * forwards the token and later sums for it: internode_meta.cuh in Java.
 *
 * <p>Tokens are divided into blocks as GPUs divide them, each with a flag of its own.
 */
public final class MetadataExchange {
    private final HostNormalState state;
    private final Routing routing;
    private final TokenMetadata metadata;
    private final HostHeap rdma;
    private final Region[] records;
    private final Region flags;
    private final int numBlocks;
    private final int rowsPerRecord;

    /**
     * Of one plan.
     *
     * @param numSms into how many blocks tokens are divided
     */
    public MetadataExchange(
            HostNormalState state, HostDispatchHandle handle, TokenMetadata metadata, int numSms) {
        this.state = state;
        this.routing = handle.routing;
        this.metadata = metadata;
        this.rdma = state.context.rdma();
        this.flags = state.rdmaLayout.recordFlags();
        this.numBlocks = numSms;
        this.rowsPerRecord = NormalRdmaLayout.nodeRows(state.topology);
        this.records = new Region[Rails.numCells(state.topology)];
        int recordBytes = NormalRdmaLayout.recordBytes(state.topology, handle.numTopk());
        for (int cell = 0; cell < records.length; cell++) {
            records[cell] = state.rdmaLayout.records().cell(cell).of(recordBytes);
        }
    }

    public void run() {
        Rails rails = state.rails();
        for (int node = 0; node < rails.forwarders().size(); node++) {
            if (rails.forwarders().isUsed(node)) {
                sendRecords(node, rails.forwarders());
            }
        }
        for (int token = 0; token < routing.numTokens; token++) {
            if (routing.staysNear(token)) {
                metadata.load(token);
                spread(routing.own, state.topology.rdmaRank(), token);
            }
        }
        for (int cell = 0; cell < records.length; cell++) {
            if (rails.homes().isUsed(cell)) {
                forwardRecords(cell, rails.homes().rank(cell));
            }
        }
        state.exchange.signalNode(state.nvlLayout.metaFlags(), 0);
        state.exchange.awaitNode(state.nvlLayout.metaFlags(), FaultPhase.META);
    }

    private int perBlock(int numTokens) {
        return Math.ceilDiv(numTokens, numBlocks);
    }

    private void sendRecords(int node, Rails.Ends forwarders) {
        int peer = forwarders.rank(node);
        MemorySegment target = rdma.of(peer);
        Region cell = records[forwarders.cell(node)];
        int perBlock = perBlock(routing.numTokens);
        for (int token = 0; token < routing.numTokens; token++) {
            long at = cell.at(token);
            for (int nvlRank = 0; nvlRank < rowsPerRecord; nvlRank++) {
                int row = routing.own.row(node, token, nvlRank);
                target.set(ValueLayout.JAVA_INT, at + 4L * nvlRank, row);
            }
            if (routing.crosses(token, node)) {
                metadata.load(token);
                metadata.store(target, at + (long) Integer.BYTES * rowsPerRecord);
            }
            if ((token + 1) % perBlock == 0 || token + 1 == routing.numTokens) {
                long flag = flags.at(forwarders.cell(node), token / perBlock);
                long epoch = Integer.toUnsignedLong(state.exchange.epoch());
                rdma.signal(peer, flag, epoch); // release; pairs with forwardRecords
            }
        }
    }

    private void forwardRecords(int cell, int home) {
        MemorySegment source = rdma.local();
        NodeRows rows = routing.forwarded;
        int numTokens = routing.sourceTokens(cell);
        int perBlock = perBlock(numTokens);
        for (int token = 0; token < numTokens; token++) {
            if (token % perBlock == 0) {
                // acquire; pairs with sendRecords
                state.exchange.await(rdma, flags.at(cell, token / perBlock), home, FaultPhase.META);
            }
            long at = records[cell].at(token);
            for (int nvlRank = 0; nvlRank < rowsPerRecord; nvlRank++) {
                int row = source.get(ValueLayout.JAVA_INT, at + 4L * nvlRank);
                rows.set(cell, token, nvlRank, row);
            }
            if (rows.goesTo(cell, token)) {
                metadata.load(source, at + (long) Integer.BYTES * rowsPerRecord);
                spread(rows, cell, token);
            }
        }
    }

    private void spread(NodeRows rows, int place, int token) {
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int row = rows.row(place, token, nvlRank);
            if (row >= 0) {
                metadata.write(nvlRank, row);
            }
        }
    }
}
