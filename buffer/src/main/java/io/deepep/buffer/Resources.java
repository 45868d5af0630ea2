package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.NativeCallException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.spi.HeapRanks;
import java.util.Optional;

/**
 * What a backend gives one rank: memory, the kernels of both modes, and the order in which
 * operations run.
 */
interface Resources extends AutoCloseable {
    /** Normal mode, or null. */
    NormalKernels normal();

    /** Low-latency mode, or null. */
    LowLatencyKernels lowLatency();

    /** Whom the group knows to be gone, but for those masked in normal mode. */
    KnownDepartures departures();

    /**
     * Demands that memory of this rank's peers can be replaced.
     *
     * @throws UnsupportedOperationException if it cannot, as on all ranks
     */
    default void requireReplaceable() {}

    /**
     * Takes in the memory of new ranks: collective with their opening, once no call of this rank is
     * under way.
     */
    void admit(HeapRanks ranks);

    /** The rank is in another group from here on. */
    void moveTo(Communicator group);

    /** Whether the calling thread is in a call whose memory must not go yet. */
    default boolean isInCall() {
        return false;
    }

    /**
     * Demands that the communication stream can be waited for: in a capture that would be refused,
     * and spoil the capture.
     *
     * @throws IllegalStateException with the cure
     */
    default void requireNoCapture() {}

    /** What the network of this rank has reported; empty if it has nothing to report. */
    default Optional<NativeCallException> networkFailure() {
        return Optional.empty();
    }

    /**
     * Waits until what this rank has sent has arrived, and connects ranks anew whose connections
     * have failed: collective, while no rank sends.
     */
    default void mendNetwork() {}

    /**
     * Masks a rank in the modes that can, or takes it back; in normal mode once no call is under
     * way.
     *
     * @throws UnsupportedOperationException if there is no such mode
     */
    void updateMask(int rank, boolean masked);

    /** Waits until no call of this rank is under way, nor a replay of a graph. */
    void becomeIdle();

    /** The stream of asynchronous calls. */
    Stream communicationStream();

    /**
     * Refuses to prepare an operation where that cannot be done now.
     *
     * @throws IllegalStateException with the cure
     */
    default void requirePreparable(CallOptions options) {}

    /** Runs a planned operation in stream order and gives its result. */
    <R> R run(PreparedOperation<R> operation, CallOptions options);

    /**
     * Runs the second half of an operation whose first half has run, in stream order, and waits for
     * it.
     */
    void receive(PreparedOperation<?> operation);

    /** Whether what operations enqueue goes into a graph. */
    default boolean isCapturing() {
        return false;
    }

    /**
     * Nanoseconds waited for each rank since the buffer opened, a new array; null where waits are
     * not measured.
     */
    default long[] waits() {
        return null;
    }

    /** Times work on the GPU; null on the host. */
    default DeviceTimer timer() {
        return null;
    }

    /** Waits until work issued before, and the options' previous event, are over. */
    void await(CallOptions options);

    /** Where this rank's own memory lies. */
    OwnMemory ownMemory();

    /** A view of this rank's own memory. */
    Tensor localTensor(DType dtype, long numElements, long offset, boolean rdma);

    @Override
    void close();
}
