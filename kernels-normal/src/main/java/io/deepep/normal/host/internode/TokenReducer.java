package io.deepep.normal.host.internode;

import io.deepep.CombinePlan;
import io.deepep.Tensor;
import io.deepep.host.RowSum;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.call.Role;
import io.deepep.normal.host.node.OfferedRows;
import io.deepep.normal.host.node.SentRows;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.normal.host.routing.Routing;

/**
 * Brings this rank's tokens home: for each one the rows of this node in the order of nvlRanks, then
 * what each other node summed, in the order of nodes, then the biases; fp32 accumulation, rounded
 * once. The order never depends on what arrives first.
 */
public final class TokenReducer implements Role {
    private static final int TOKENS_PER_TURN = 16;

    private final HostNormalState state;
    private final Routing routing;
    private final Rings rings;
    private final OfferedRows offered;
    private final SentRows sent;
    private final int hidden;
    private final Tensor bias0;
    private final Tensor bias1;
    private final Tensor out;
    private final RowSum sum;
    private final int numNodes;
    private final int[] next;
    private int numOpen;
    private final Blocked blocked;

    /**
     * A reducer.
     *
     * @param rings null on one node
     */
    public TokenReducer(
            HostNormalState state,
            HostDispatchHandle handle,
            Rings rings,
            OfferedRows offered,
            SentRows sent,
            CombinePlan plan,
            Tensor out) {
        this.state = state;
        this.routing = handle.routing;
        this.rings = rings;
        this.blocked = new Blocked(state, state.rails().forwarders());
        this.offered = offered;
        this.sent = sent;
        this.hidden = plan.hidden();
        this.bias0 = plan.bias0();
        this.bias1 = plan.bias1();
        this.out = out;
        this.numNodes = state.topology.numRdmaRanks();
        this.sum = new RowSum(state.topology.numNvlRanks() + numNodes + 2, hidden);
        this.next = new int[rings == null ? 1 : rings.numChannels()];
    }

    @Override
    public void start() {
        numOpen = 0;
        for (int channel = 0; channel < next.length; channel++) {
            next[channel] = channel;
            numOpen += channel < routing.numTokens ? 1 : 0;
        }
    }

    @Override
    public int doWork() {
        blocked.clear();
        int done = 0;
        for (int channel = 0; channel < next.length; channel++) {
            if (next[channel] < routing.numTokens) {
                done += reduce(channel);
            }
        }
        return done;
    }

    private int reduce(int channel) {
        int done = 0;
        int token = next[channel];
        while (token < routing.numTokens && done < TOKENS_PER_TURN && hasArrived(channel, token)) {
            reduce(channel, token);
            token += next.length;
            done++;
        }
        next[channel] = token;
        numOpen -= token >= routing.numTokens ? 1 : 0;
        return done;
    }

    /** Whether every other node has sent its part of {@code token}. */
    private boolean hasArrived(int channel, int token) {
        for (int node = 0; node < numNodes; node++) {
            if (routing.crosses(token, node) && !rings.hasRow(channel, node)) {
                blocked.by(channel, node);
                return false;
            }
        }
        return true;
    }

    private void reduce(int channel, int token) {
        sum.clear();
        offered.addRows(sum, routing.own, state.topology.rdmaRank(), token);
        for (int node = 0; node < numNodes; node++) {
            if (routing.crosses(token, node)) {
                sent.add(sum, rings.ownMemory(), rings.readSlot(channel, node));
            }
        }
        addBias(bias0, token);
        addBias(bias1, token);
        sum.store(out.segment(), 2L * token * out.stride(0), hidden);
        for (int node = 0; node < numNodes; node++) {
            if (routing.crosses(token, node)) {
                rings.consumed(channel, node);
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
    public int awaited() {
        return blocked.rank();
    }

    @Override
    public void idle() {
        rings.idleForRow(blocked.channel(), blocked.place());
    }
}
