package io.deepep.normal.host.call;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.NormalState;
import io.deepep.normal.Rails;

/** What all operations of one rank's normal mode share on the host. */
public final class HostNormalState extends NormalState {
    public final HostContext context;
    public final NormalRdmaLayout rdmaLayout;
    public final CallExchange exchange;
    public final HeaderExchange headers;

    public HostNormalState(
            HostContext context,
            NormalLimits limits,
            NormalConfigs configs,
            boolean masksTimedOut) {
        super(limits, configs, context.waiter().timeouts(), Device.host());
        this.context = context;
        this.rdmaLayout = NormalRdmaLayout.of(configs.envelope(), limits, topology);
        this.exchange = new CallExchange(this, masksTimedOut);
        this.headers = new HeaderExchange(this);
    }

    @Override
    public long nvlAddress() {
        return context.nvl().local().address();
    }

    @Override
    protected Tensor nvlView(
            long offset, long numBytes, DType dtype, long[] shape, long[] strides) {
        return Tensor.strided(
                context.nvl().local().asSlice(offset, numBytes), dtype, shape, strides);
    }

    /** The rank of this node with the given nvlRank. */
    public int nodeRank(int nvlRank) {
        return topology.rankOf(topology.rdmaRank(), nvlRank);
    }

    /** Who serves whom across nodes. */
    public Rails rails() {
        return masks.rails();
    }
}
