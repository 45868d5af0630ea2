package io.deepep.djl.exchange;

import ai.djl.Device;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.Event;
import io.deepep.djl.TorchStreams;
import java.time.Duration;

/**
 * Where an exchange's two calls stand among libtorch's operations of this rank and the calls of
 * other ranks. Asked in this order, once per exchange. Here each rank goes its own way; on a GPU
 * the host runs ahead.
 */
class CallOrder {
    final Device device;

    /** Of the last combine, until somebody has asked how it went. */
    private Event unasked;

    CallOrder(Device device) {
        this.device = device;
    }

    /** The order for a rank whose arrays lie on {@code device}. */
    static CallOrder of(Buffer buffer, Device device) {
        Communicator communicator = buffer.options().communicator();
        Duration timeout = buffer.options().meetingTimeout();
        return device.isGpu() && communicator.isInProcess()
                ? new InTurn(device, () -> communicator.barrier(timeout))
                : new CallOrder(device);
    }

    /** Options of the dispatch that is called next. */
    CallOptions beforeDispatch() {
        return TorchStreams.after(device);
    }

    /**
     * Has later operations come after the dispatch.
     *
     * @param meanwhile operations that need not
     */
    void afterDispatch(Event dispatched, Runnable meanwhile) {
        meanwhile.run();
        TorchStreams.await(device, dispatched);
    }

    /** Options of the combine that is called next. */
    CallOptions beforeCombine() {
        // The combine before is over: it came before the dispatch whose counts are known.
        end();
        return TorchStreams.between(device);
    }

    /** Has later operations come after the combine. */
    void afterCombine(Event combined) {
        unasked = combined;
    }

    /** Waits for the last combine, and throws what went wrong in it. */
    void end() {
        Event last = unasked;
        unasked = null;
        if (last != null) {
            last.synchronize();
        }
    }

    /**
     * Ranks that are threads of a process. The driver holds back a thread that loads a kernel,
     * frees memory or copies to the host until waiting kernels have ended: those of its GPU and, as
     * seen of the first products of cuBLAS, those of the process's other GPUs. So nobody calls
     * before all have launched what they have to compute, and nobody computes before its call is
     * over: no kernel waits for a rank that is held back.
     */
    static class InTurn extends CallOrder {
        private final Runnable meeting;

        /** The order in which {@code meeting} waits for the other ranks. */
        InTurn(Device device, Runnable meeting) {
            super(device);
            this.meeting = meeting;
        }

        @Override
        CallOptions beforeDispatch() {
            meeting.run();
            return TorchStreams.after(device);
        }

        @Override
        void afterDispatch(Event dispatched, Runnable meanwhile) {
            dispatched.synchronize();
            meanwhile.run();
        }

        @Override
        CallOptions beforeCombine() {
            meeting.run();
            return TorchStreams.after(device);
        }

        @Override
        void afterCombine(Event combined) {
            combined.synchronize();
        }
    }
}
