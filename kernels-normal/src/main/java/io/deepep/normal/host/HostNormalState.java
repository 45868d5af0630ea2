package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.normal.NormalChecks;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import java.lang.foreign.MemorySegment;

/**
 * What all operations of one rank's normal mode share: memory, layouts, rings and their counters.
 */
final class HostNormalState {
    final HostContext context;
    final EpTopology topology;
    final NormalLimits limits;
    final Config dispatchConfig;
    final Config combineConfig;
    final Config envelope;
    final NormalNvlLayout nvlLayout;
    final NormalRdmaLayout rdmaLayout;
    final NormalChecks checks;
    final HeaderExchange exchange;
    final RdmaRings dispatchRings;
    final RdmaRings combineRings;

    HostNormalState(
            HostContext context, NormalLimits limits, Config dispatchConfig, Config combineConfig) {
        this.context = context;
        this.topology = context.topology();
        this.limits = limits;
        this.dispatchConfig = dispatchConfig;
        this.combineConfig = combineConfig;
        this.envelope = dispatchConfig.covering(combineConfig);
        this.nvlLayout = NormalNvlLayout.of(envelope, limits, topology);
        this.rdmaLayout = NormalRdmaLayout.of(envelope, limits, topology);
        this.checks = new NormalChecks(limits, topology, Device.host());
        this.exchange = new HeaderExchange(context, nvlLayout, rdmaLayout);
        this.dispatchRings =
                new RdmaRings(
                        topology,
                        context.rdma(),
                        rdmaLayout.numSlots(),
                        rdmaLayout.dispatchRing(),
                        rdmaLayout.dispatchTails(),
                        rdmaLayout.dispatchHeads());
        this.combineRings =
                new RdmaRings(
                        topology,
                        context.rdma(),
                        rdmaLayout.numSlots(),
                        rdmaLayout.combineRing(),
                        rdmaLayout.combineTails(),
                        rdmaLayout.combineHeads());
    }

    /** Whether {@code tensor} begins in this rank's NVL memory. */
    boolean nvlContains(Tensor tensor) {
        MemorySegment nvl = context.nvl().local();
        return tensor.address() >= nvl.address()
                && tensor.address() < nvl.address() + nvl.byteSize();
    }

    /** The rank of this node with the given nvlRank. */
    int nodeRank(int nvlRank) {
        return topology.rankOf(topology.rdmaRank(), nvlRank);
    }
}
