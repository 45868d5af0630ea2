package io.deepep.testkit;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.Tensor;
import java.util.Optional;

/**
 * What a backend gives to tests: memory of its device, and ways in and out. Called by all rank
 * threads at once.
 */
public interface TestBackend {
    /** The name in reports, and in the properties that {@link TestBackends} reads. */
    String name();

    /** The kind of device that tensors lie on. */
    Device.Kind kind();

    /** The device of one of {@code numRanks} ranks. */
    Device device(int rank, int numRanks);

    /**
     * A device tensor with the shape, strides and bits of {@code hostTensor}; ready when the call
     * returns.
     */
    Tensor upload(Device device, Tensor hostTensor);

    /**
     * A contiguous host copy of a device tensor, taken when all work issued on the device so far is
     * over.
     */
    Tensor download(Tensor deviceTensor);

    /** Overwrites the elements of a device tensor; ready when the call returns. */
    void write(Tensor hostTensor, Tensor deviceTensor);

    /** A new stream of an engine. */
    TestStream newStream(Device device);

    /** Whether calls can be captured from its streams. */
    default boolean hasGraphs() {
        return false;
    }

    /** Why the backend cannot be used on this machine; empty if it can. */
    default Optional<String> unavailabilityReason() {
        return Optional.empty();
    }

    /** Whether each rank needs a process of its own; otherwise ranks may be threads too. */
    default boolean needsProcessPerRank() {
        return false;
    }

    /** The network of groups of several nodes. */
    default Network network() {
        return Network.auto();
    }

    /** The same of groups whose ranks are masked by hand in normal mode. */
    default Network networkWithMasks() {
        return network();
    }

    /** Whether ranks of several nodes go on without one that is dead, and with one in its place. */
    default boolean outlivesRanks() {
        return true;
    }

    /** Whether the backend has what such a group needs, on whatever machine. */
    default boolean supports(EpTopology topology) {
        return true;
    }

    /** The most ranks of a group that the devices here have room for at once. */
    default int mostRanks(EpTopology topology, boolean lowLatency) {
        return Integer.MAX_VALUE;
    }
}
