package io.deepep.normal.host;

import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;

/** Writes this rank's tokens to their rows at the ranks of its own node. Never waits. */
final class DispatchSender implements Role {
    private static final int TOKENS_PER_TURN = 32;

    private final HostNormalState state;
    private final Routing routing;
    private final TokenRows tokens;
    private final HostHeap nvl;
    private int next;
    private boolean done;

    DispatchSender(HostNormalState state, Routing routing, TokenRows tokens) {
        this.state = state;
        this.routing = routing;
        this.tokens = tokens;
        this.nvl = state.context.nvl();
    }

    void start() {
        next = 0;
        done = false;
    }

    @Override
    public int doWork() {
        int end = Math.min(next + TOKENS_PER_TURN, routing.numTokens());
        for (; next < end; next++) {
            send(next);
        }
        if (next == routing.numTokens()) {
            finish();
        }
        return 1;
    }

    private void send(int token) {
        int mask = routing.nodeMask(token);
        if (mask == 0) {
            return;
        }
        tokens.prepareMeta(token);
        for (int rest = mask; rest != 0; rest &= rest - 1) {
            int nvlRank = Integer.numberOfTrailingZeros(rest);
            int peer = state.nodeRank(nvlRank);
            int row = routing.row(token, nvlRank);
            tokens.writeRow(token, nvl.of(peer), state.nvlLayout.dispatchRows().at(row));
            tokens.writeMeta(nvl.of(peer), state.nvlLayout.recvMeta().at(row));
        }
    }

    private void finish() {
        long flag = state.nvlLayout.dispatchFlags().at(state.topology.rank());
        for (int nvlRank = 0; nvlRank < state.topology.numNvlRanks(); nvlRank++) {
            nvl.signal(
                    state.nodeRank(nvlRank),
                    flag,
                    state.exchange.epoch()); // release; pairs with the flag in DispatchReceiver
        }
        done = true;
    }

    @Override
    public boolean isDone() {
        return done;
    }

    @Override
    public void idle(HostWait waiter) {
        throw new AssertionError("a sender within the node never waits");
    }
}
