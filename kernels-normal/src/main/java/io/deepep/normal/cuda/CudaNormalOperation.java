package io.deepep.normal.cuda;

import io.deepep.Plan;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.NormalCall;
import io.deepep.normal.RingShape;
import io.deepep.normal.RowSpread;
import io.deepep.normal.cuda.kernels.InternodeStructs;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RunObservation;
import java.lang.foreign.Arena;

/**
 * What a dispatch and a combine on a GPU have in common: what one launch reports to the host, and
 * parameters that begin with the group. They are filled when the plan is prepared.
 */
abstract class CudaNormalOperation<R> implements CudaOperation<R> {
    final CudaNormalState state;
    final CudaDispatchHandle handle;

    /** The end of the latest run. */
    final CallEvent event;

    /** Of the status, and what a kernel tells besides. */
    final PinnedSlots.Slot slot;

    final NormalStatus status;
    final Arena arena = Arena.ofAuto();

    /** Those of one node, which come first also where there are several. */
    final Params params;

    final WaitTimes waits;

    /** What of these concerns other nodes; null on one node. */
    private final Params between;

    CudaNormalOperation(
            CudaNormalState state, CudaDispatchHandle handle, Plan plan, NormalCall call) {
        this.state = state;
        this.handle = handle;
        this.event = new CallEvent(state.stream);
        boolean combine = call == NormalCall.COMBINE;
        long slotBytes =
                combine ? StatusStruct.BLOCK.numBytes() : CudaDispatchOutputs.slotBytes(handle);
        this.slot = state.slots.take(this, slotBytes, event);
        this.status =
                new NormalStatus(
                        slot, state.messages(call, plan, handle.numExperts()), state.masks);
        KernelStruct oneNode = combine ? state.structs.combine : state.structs.dispatch;
        if (state.internode == null) {
            this.between = null;
            this.params = oneNode.allocate(arena);
        } else {
            KernelStruct acrossNodes =
                    combine ? state.structs.internodeCombine : state.structs.internodeDispatch;
            Params whole = acrossNodes.allocate(arena);
            this.between = whole.inner("between", InternodeStructs.INTERNODE);
            this.params = whole.inner("local", oneNode);
        }
        state.setGroup(params, status);
        this.waits = new WaitTimes(state, params, event);
    }

    /**
     * Fills what concerns other nodes, of which there are some.
     *
     * @param slotBytes of a ring's slot
     * @param numTopk selections of a record, 0 for none
     */
    final void fillBetween(RingShape rings, int slotBytes, int numTopk) {
        state.internode.fill(between, handle.routing, rings, slotBytes, numTopk);
    }

    /** Waits for the run before, unless runs are recorded; throws what nobody asked about. */
    final void beginRun() {
        if (!state.stream.isCapturing()) {
            event.synchronize();
            status.beginRun();
        }
    }

    /** What the next run, which is observed, will tell of its dispatch's rows; null if nothing. */
    DispatchTrace nextTrace() {
        return handle.trace;
    }

    /** Reports how rows have spread. */
    abstract void describe(RowSpread ofDispatch, RecordedFacts facts);

    @Override
    public final RunObservation observe() {
        waits.announce(this);
        DispatchTrace trace = nextTrace();
        return (facts, completed) -> {
            describe(facts, completed);
            waits.describe(facts);
            RowSpread rows = trace == null ? null : trace.rows();
            if (rows != null) {
                describe(rows, facts);
            }
        };
    }

    @Override
    public final void endsWithStream(boolean may) {
        event.followStreamInGraph(may);
    }

    @Override
    public final DeviceEvent event() {
        return event;
    }
}
