package io.deepep.djl.exchange;

import ai.djl.Device;
import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.Event;
import io.deepep.Graph;
import io.deepep.djl.TorchGraph;
import io.deepep.djl.TorchStreams;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/**
 * Where an exchange's two calls stand among libtorch's operations of this rank and the calls of
 * other ranks. On a GPU the host runs ahead.
 *
 * <p>Ranks that are threads of one process meet before each call and after it. The driver holds
 * back a thread that loads a kernel, frees memory or copies to the host until waiting kernels have
 * ended: those of its GPU and, when it loads a library for all of them, those of other GPUs;
 * meanwhile others may not launch. So nobody calls before all have launched what they have to
 * compute, and nobody computes before all have called: no kernel waits for a rank that is held
 * back.
 */
class CallOrder {
    /** Ranks do not meet. */
    static final Runnable ALONE = () -> {};

    private final Device device;
    private final Runnable meeting;

    /** Of the last combines, until somebody has asked how they went. */
    private final Set<Event> unasked = new LinkedHashSet<>();

    /** Of combines that go into a graph; null if none does. */
    private Set<Event> captured;

    /** The order of a rank that waits for the others by {@code meeting}. */
    CallOrder(Device device, Runnable meeting) {
        this.device = device;
        this.meeting = meeting;
    }

    /** The order for a rank whose arrays lie on {@code device}. */
    static CallOrder of(Buffer buffer, Device device) {
        return new CallOrder(device, meeting(buffer, device));
    }

    /** What ranks do before and after each call. */
    static Runnable meeting(Buffer buffer, Device device) {
        Communicator communicator = buffer.options().communicator();
        Duration timeout = buffer.options().meetingTimeout();
        return device.isGpu() && communicator.isInProcess()
                ? () -> communicator.barrier(timeout)
                : ALONE;
    }

    /** Dispatches after this rank's operations so far. */
    final <R> R dispatch(Function<CallOptions, R> call) {
        return together(call);
    }

    /**
     * Has later operations come after the dispatch.
     *
     * @param meanwhile operations that need not
     */
    final void afterDispatch(Event dispatched, Runnable meanwhile) {
        meanwhile.run();
        if (!isCapturing()) {
            await(dispatched);
        }
    }

    /** Combines after this rank's operations so far, and before its later ones. */
    void combine(Function<CallOptions, Event> call) {
        if (isCapturing()) {
            captured.add(together(call));
            return;
        }
        // The combine before is over: it came before the dispatch whose rows are combined now.
        end();
        Event combined = together(call);
        await(combined);
        unasked.add(combined);
    }

    /** Waits for the last combines, and throws what went wrong in them. */
    final void end() {
        List<Event> last = List.copyOf(unasked);
        unasked.clear();
        RuntimeException failure = null;
        for (Event event : last) {
            try {
                event.synchronize();
            } catch (RuntimeException another) {
                if (failure == null) {
                    failure = another;
                } else {
                    failure.addSuppressed(another);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** Whether calls go into a graph now. */
    final boolean isCapturing() {
        return captured != null;
    }

    /**
     * Has the calls that {@code work} makes go into a graph, on libtorch's stream alone.
     *
     * @param allowed asked before each replay; throws if it must not be
     * @param replayed told of each replay
     */
    final Graph capture(Runnable work, Runnable allowed, Runnable replayed) {
        Set<Event> ofGraph = new LinkedHashSet<>();
        captured = ofGraph;
        try {
            return new Replays(TorchGraph.capture(device, work), ofGraph, allowed, replayed);
        } finally {
            captured = null;
        }
    }

    /** A graph that ranks launch together, like a call. */
    private final class Replays implements Graph {
        private final Graph graph;
        private final Set<Event> combined;
        private final Runnable allowed;
        private final Runnable replayed;

        Replays(Graph graph, Set<Event> combined, Runnable allowed, Runnable replayed) {
            this.graph = graph;
            this.combined = combined;
            this.allowed = allowed;
            this.replayed = replayed;
        }

        @Override
        public void replay() {
            allowed.run();
            together(
                    _ -> {
                        graph.replay();
                        return null;
                    });
            unasked.addAll(combined);
            replayed.run();
        }

        @Override
        public void close() {
            graph.close();
        }
    }

    private <R> R together(Function<CallOptions, R> call) {
        if (isCapturing()) {
            return call.apply(TorchStreams.between(device)); // nothing is launched
        }
        meeting.run();
        R result;
        try {
            result = call.apply(options());
        } catch (RuntimeException | Error refused) {
            meetAfter(refused);
            throw refused;
        }
        meeting.run();
        return result;
    }

    /** The others wait for a rank whose call was refused too. */
    private void meetAfter(Throwable refused) {
        try {
            meeting.run();
        } catch (RuntimeException e) {
            refused.addSuppressed(e);
        }
    }

    /** Has this rank's later operations come after {@code event}. */
    void await(Event event) {
        TorchStreams.await(device, event);
    }

    /** Of the call that is made next. */
    CallOptions options() {
        return TorchStreams.after(device);
    }
}
