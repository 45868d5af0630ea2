package io.deepep.normal.host;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.RoutingException;
import io.deepep.host.HostContext;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.Masks;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalKernels;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.RoutingScan;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Normal mode on the host: the protocol as plain Java, one rank per thread. */
public final class HostNormalKernels extends NormalKernels {
    private final HostNormalState state;

    /**
     * Normal mode of one rank.
     *
     * @param context its NVL memory must hold a {@link io.deepep.normal.NormalNvlLayout} and its
     *     RDMA memory a {@link io.deepep.normal.NormalRdmaLayout} for the {@link
     *     io.deepep.Config#covering} of the configurations
     * @param masksTimedOut whether a rank that does not come is masked, so that a call without it
     *     must fail on all others
     */
    public HostNormalKernels(
            HostContext context,
            NormalLimits limits,
            Config dispatchConfig,
            Config combineConfig,
            boolean masksTimedOut) {
        var configs = new NormalConfigs(context.topology(), dispatchConfig, combineConfig);
        var state = new HostNormalState(context, limits, configs, masksTimedOut);
        super(state);
        this.state = state;
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        state.masks.update(rank, masked);
        state.context.waiter().askAgain();
    }

    @Override
    public boolean canMask() {
        return true;
    }

    @Override
    public int epoch() {
        return state.exchange.epoch();
    }

    @Override
    public void startAfter(int epoch) {
        state.exchange.startAfter(epoch);
    }

    @Override
    public DispatchLayout layout(Tensor topkIdx, int numExperts, Event event) {
        state.checks.layout(topkIdx, numExperts);
        int numTokens = (int) topkIdx.size(0);
        RoutingScan scan = new RoutingScan(state.topology, numTokens, numExperts);
        scan.scan(topkIdx, null, new Masks(state.topology));
        if (scan.fault() != null) {
            throw new RoutingException(
                    state.topology.rank(), FaultMessages.routing(scan.fault(), numExperts));
        }
        return new DispatchLayout(
                ints(scan.tokensPerRank),
                state.topology.isInternode() ? ints(countNodes(scan, numTokens)) : null,
                ints(scan.selectionsPerExpert),
                isTokenInRank(scan, numTokens),
                event);
    }

    private int[] countNodes(RoutingScan scan, int numTokens) {
        int[] counts = new int[state.topology.numRdmaRanks()];
        for (int token = 0; token < numTokens; token++) {
            for (int node = 0; node < counts.length; node++) {
                counts[node] += scan.goesTo(token, node) ? 1 : 0;
            }
        }
        return counts;
    }

    private Tensor isTokenInRank(RoutingScan scan, int numTokens) {
        int numRanks = state.topology.numRanks();
        Tensor mask = Tensor.allocate(Arena.ofAuto(), DType.BOOL, numTokens, numRanks);
        for (int token = 0; token < numTokens; token++) {
            for (int rank = 0; rank < numRanks; rank++) {
                mask.setLong(scan.goes(token, rank) ? 1 : 0, token, rank);
            }
        }
        return mask;
    }

    private static Tensor ints(int[] values) {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.I32, values.length);
        MemorySegment.copy(values, 0, tensor.segment(), ValueLayout.JAVA_INT, 0, values.length);
        return tensor;
    }

    @Override
    public Operation<DispatchResult> prepareDispatch(DispatchPlan plan) {
        return new HostDispatch(state, plan);
    }

    @Override
    public Operation<CombineResult> prepareCombine(CombinePlan plan) {
        return new HostCombine(state, plan);
    }
}
