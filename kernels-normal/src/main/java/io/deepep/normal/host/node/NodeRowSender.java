package io.deepep.normal.host.node;

import io.deepep.host.HostHeap;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;
import io.deepep.normal.host.routing.Routing;
import io.deepep.spi.Region;

/** Writes this rank's tokens to their rows at the ranks of its own node. Never waits. */
public final class NodeRowSender implements Role {
    private static final int TOKENS_PER_TURN = 32;

    private final HostNormalState state;
    private final Routing routing;
    private final GivenRows tokens;
    private final Region rows;
    private final HostHeap nvl;
    private int next;

    public NodeRowSender(HostNormalState state, Routing routing, GivenRows tokens) {
        this.state = state;
        this.routing = routing;
        this.tokens = tokens;
        this.rows = state.nvlLayout.recvRows().of(tokens.format.strideBytes());
        this.nvl = state.context.nvl();
    }

    @Override
    public void start() {
        next = 0;
    }

    @Override
    public int doWork() {
        int end = Math.min(next + TOKENS_PER_TURN, routing.numTokens);
        for (; next < end; next++) {
            send(next);
        }
        return 1;
    }

    private void send(int token) {
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            int row = routing.own.row(state.topology.rdmaRank(), token, nvlRank);
            if (row >= 0) {
                tokens.write(token, nvl.of(state.nodeRank(nvlRank)), rows.at(row));
            }
        }
    }

    @Override
    public boolean isDone() {
        return next == routing.numTokens;
    }

    @Override
    public int awaited() {
        return state.topology.rank();
    }

    @Override
    public void idle() {
        throw new AssertionError("a sender within the node never waits");
    }
}
