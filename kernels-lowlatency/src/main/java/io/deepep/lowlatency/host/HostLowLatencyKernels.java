package io.deepep.lowlatency.host;

import io.deepep.Device;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.DispatchFlagWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyChecks;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;

/**
 * Low-latency mode of one rank in plain Java.
 *
 * <p>The rows of a masked rank that is only late lie in slots of its own, and its flags are of an
 * epoch nobody waits for, so neither is misread.
 */
public final class HostLowLatencyKernels implements LowLatencyKernels {
    final int rank;
    final HostHeap rdma;
    final LowLatencyLimits limits;
    final LowLatencyLayout layout;
    private final LowLatencyChecks checks;
    final Peers peers;
    final Banks<HostBank> dispatches;
    final Banks<CombineBank> combines;
    final DispatchSender sender;
    final DispatchReceiver receiver;
    final Combiner combiner;

    /** Freed when unreachable: results handed out keep it alive. */
    private final Arena arena = Arena.ofAuto();

    /**
     * The kernels of one rank.
     *
     * @param maskTimedOutRanks whether a rank that does not come is masked instead of failing the
     *     call
     */
    public HostLowLatencyKernels(
            HostContext context, LowLatencyLimits limits, boolean maskTimedOutRanks) {
        this.rank = context.topology().rank();
        this.rdma = context.rdma();
        this.limits = limits;
        this.layout = LowLatencyLayout.of(limits, context.topology());
        this.checks =
                new LowLatencyChecks(
                        limits,
                        context.topology(),
                        Device.host(),
                        DispatchFlagWord.MAX_LOCAL_EXPERTS);
        this.peers = new Peers(context, layout, limits, maskTimedOutRanks);
        int numRanks = peers.count();
        this.dispatches =
                new Banks<>(
                        Kind.DISPATCH,
                        new HostBank(arena, limits, numRanks),
                        new HostBank(arena, limits, numRanks));
        this.combines =
                new Banks<>(Kind.COMBINE, new CombineBank(numRanks), new CombineBank(numRanks));
        this.sender = new DispatchSender(this);
        this.receiver = new DispatchReceiver(this);
        this.combiner = new Combiner(this);
    }

    @Override
    public Operation<LowLatencyDispatchResult> prepareDispatch(LowLatencyDispatchPlan plan) {
        checks.dispatch(plan);
        return new HostDispatch(this, plan);
    }

    @Override
    public Operation<LowLatencyCombineResult> prepareCombine(LowLatencyCombinePlan plan) {
        checks.combine(plan, BankHandle.of(plan.handle(), dispatches).weighted());
        return new HostCombine(this, plan);
    }

    @Override
    public Tensor combineBuffer(LowLatencyHandle handle) {
        return BankHandle.of(handle, dispatches).bank().combineBuffer();
    }

    /** What is stored lies in the peers' memory. */
    @Override
    public void quiet() {}

    @Override
    public void reset() {
        rdma.local().asSlice(0, layout.headersEnd()).fill((byte) 0);
        peers.reset();
        dispatches.clean();
        combines.clean();
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        peers.mask(rank, masked);
    }

    @Override
    public int[] queryMask() {
        return peers.masks();
    }

    /**
     * Counts a call that another rank made where this one made one of the other kind, so that they
     * are in step again, unless this one has made it since. The slots are free: that rank got an
     * acknowledgement of the call before the last of that kind.
     */
    void skip(Kind kind, long skipped) {
        Banks<?> banks = kind == Kind.DISPATCH ? dispatches : combines;
        if (skipped == banks.next()) {
            banks.skip();
            peers.acknowledge(kind, skipped);
        }
    }
}
