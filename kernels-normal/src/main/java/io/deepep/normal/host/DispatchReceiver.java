package io.deepep.normal.host;

import io.deepep.host.HostWait;

/** Waits until the rows of every source are complete. */
final class DispatchReceiver implements Role {
    private final HostNormalState state;
    private int numComplete;

    DispatchReceiver(HostNormalState state) {
        this.state = state;
    }

    void start() {
        numComplete = 0;
    }

    private long flag() {
        return state.context
                .nvl()
                .flag(
                        state.nvlLayout
                                .dispatchFlags()
                                .at(numComplete)); // acquire; pairs with sender and forwarder
    }

    @Override
    public int doWork() {
        int before = numComplete;
        while (!isDone() && flag() >= state.exchange.epoch()) {
            numComplete++;
        }
        return numComplete - before;
    }

    @Override
    public boolean isDone() {
        return numComplete == state.topology.numRanks();
    }

    @Override
    public void idle(HostWait waiter) {
        waiter.idle(numComplete, "dispatch.rows", state.exchange.epoch(), flag());
    }
}
