package io.deepep.normal.host.call;

import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalChecks;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;
import io.deepep.normal.ReceivedRows;
import io.deepep.spi.CallTimeouts;
import java.lang.foreign.MemorySegment;

/** What all operations of one rank's normal mode share. */
public final class HostNormalState {
    public final HostContext context;
    public final EpTopology topology;
    public final NormalLimits limits;
    public final Config dispatchConfig;
    public final Config combineConfig;
    public final Config envelope;
    public final NormalNvlLayout nvlLayout;
    public final NormalRdmaLayout rdmaLayout;
    public final NormalChecks checks;
    public final ReceivedRows received;
    public final CallExchange exchange;
    public final HeaderExchange headers;

    public HostNormalState(
            HostContext context,
            NormalLimits limits,
            Config dispatchConfig,
            Config combineConfig,
            boolean masksTimedOut) {
        this.context = context;
        this.topology = context.topology();
        this.limits = limits;
        this.dispatchConfig = dispatchConfig;
        this.combineConfig = combineConfig;
        NormalConfigs.requireFor(topology, dispatchConfig);
        NormalConfigs.requireFor(topology, combineConfig);
        this.envelope = dispatchConfig.covering(combineConfig);
        this.nvlLayout = NormalNvlLayout.of(limits, topology);
        this.rdmaLayout = NormalRdmaLayout.of(envelope, limits, topology);
        this.checks = new NormalChecks(limits, topology, Device.host());
        this.received = new ReceivedRows(nvlLayout);
        this.exchange = new CallExchange(context, nvlLayout, rdmaLayout, masksTimedOut);
        this.headers =
                new HeaderExchange(context, nvlLayout, rdmaLayout, exchange, limits.maxExperts());
    }

    public FaultMessages messages(NormalCall call, Plan plan, int numExperts) {
        CallTimeouts timeouts = context.waiter().timeouts().of(plan);
        return new FaultMessages(call, topology, timeouts, numExperts, nvlLayout.capacity());
    }

    /** Whether {@code tensor} begins in this rank's NVL memory. */
    public boolean nvlContains(Tensor tensor) {
        MemorySegment nvl = context.nvl().local();
        return tensor.address() >= nvl.address()
                && tensor.address() < nvl.address() + nvl.byteSize();
    }

    /** The rank of this node with the given nvlRank. */
    public int nodeRank(int nvlRank) {
        return topology.rankOf(topology.rdmaRank(), nvlRank);
    }

    /** Who serves whom across nodes. */
    public Rails rails() {
        return exchange.masks.rails();
    }
}
