package io.deepep.normal.host.routing;

import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalHandle;
import io.deepep.normal.RowSpread;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.Region;

/** The routing of one plan's latest dispatch, on the host. */
public final class HostDispatchHandle extends NormalHandle {
    private final HostNormalState owner;
    public final Routing routing;

    /** The expanded layout, or null. */
    public final ExpertGroups groups;

    /** [R] Rows that came from each rank. */
    public final int[] receivedRows;

    /** i32 [K] of each received row: local experts, or -1. */
    public final Region recvTopk;

    /** f32 [K] of each received row. */
    public final Region recvWeights;

    private int epoch;
    private int masked;

    /** Of a plan without a handle. */
    public HostDispatchHandle(HostNormalState owner, DispatchPlan plan) {
        super(owner, plan);
        this.owner = owner;
        this.routing =
                new Routing(owner.topology, numTokens(), numExperts(), owner.limits.maxTokens());
        this.groups =
                plan.expanded()
                        ? new ExpertGroups(numLocalExperts(), numTopk(), plan.expertAlignment())
                        : null;
        this.receivedRows = new int[owner.topology.numRanks()];
        boolean topk = numTopk() > 0;
        long topkBytes = (long) Integer.BYTES * numTopk();
        this.recvTopk = topk ? owner.nvlLayout.recvTopk().of(topkBytes) : null;
        this.recvWeights = topk ? owner.nvlLayout.recvWeights().of(topkBytes) : null;
    }

    /** The routing is that of the dispatch {@code atEpoch}, which had these headers. */
    public void validate(int atEpoch, HeaderExchange headers) {
        epoch = atEpoch;
        masked = owner.masks.word();
        int numRows = 0;
        for (int source = 0; source < receivedRows.length; source++) {
            receivedRows[source] = headers.rows(source, owner.topology.rank());
            numRows += receivedRows[source];
        }
        validate(numRows, groups == null ? numRows : groups.numRows());
    }

    /** Says in a header that the routing is used; all ranks refuse it if masks have changed. */
    public void announce(HeaderExchange headers) {
        headers.set(HeaderWord.HANDLE_EPOCH, epoch);
        if (masked != owner.masks.word()) {
            headers.setStatus(
                    Fault.ofRouting(FaultCode.HANDLE_MASKED, owner.topology.rank(), -1, -1, 0));
        }
    }

    /** How the rows of the latest dispatch spread. */
    public RowSpread rows() {
        EpTopology topology = owner.topology;
        long nvlink = 0;
        long rdma = 0;
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            for (int token = 0; token < numTokens(); token++) {
                int numReached = routing.scan.numRanks(token, node);
                if (numReached == 0) {
                    continue;
                }
                boolean near = node == topology.rdmaRank();
                int holder = near ? topology.rank() : owner.rails().forwarders().rank(node);
                int place = topology.rankOf(node, holder % topology.numNvlRanks());
                nvlink += numReached - (routing.scan.goes(token, place) ? 1 : 0);
                rdma += near ? 0 : 1;
            }
        }
        return new RowSpread(routing.scan.tokensPerRank, receivedRows, nvlink, rdma);
    }
}
