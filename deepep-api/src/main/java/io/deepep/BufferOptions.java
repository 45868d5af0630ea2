package io.deepep;

import io.deepep.observe.BufferObserver;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/**
 * The options that a {@link Buffer} is opened with, as {@link Buffer.Builder} collects them.
 *
 * @param communicator this rank's end of the group
 * @param topology this rank's place in the group
 * @param device the device that this rank's tensors are on; it decides the backend
 * @param communicationStream the engine's stream that calls run on, or null for a stream of the
 *     buffer
 * @param network how GPUs of different nodes reach each other
 * @param normal limits of normal mode, or null if it is not used
 * @param lowLatency limits of low-latency mode, or null if it is not used
 * @param numNvlBytes size of the NVL buffer in bytes; 0 for what the limits need
 * @param numRdmaBytes size of the RDMA buffer in bytes; 0 for what the limits need
 * @param dispatchConfig configuration of normal dispatches
 * @param combineConfig configuration of normal combines
 * @param defaults the configurations that apply where none was chosen; where ranks share a GPU, a
 *     configuration that equals its default is lowered to what fits there
 * @param timeout how long to wait for a peer within a call, at most 365 days
 * @param startTimeout how long to wait until the others begin a call, at most 365 days; null for
 *     {@code timeout}
 * @param maskTimedOutRanks whether a rank that does not come in time is masked
 * @param observers the observers of every call; may differ between ranks
 */
public record BufferOptions(
        Communicator communicator,
        EpTopology topology,
        Device device,
        Stream communicationStream,
        Network network,
        NormalLimits normal,
        LowLatencyLimits lowLatency,
        long numNvlBytes,
        long numRdmaBytes,
        Config dispatchConfig,
        Config combineConfig,
        NormalDefaults defaults,
        Duration timeout,
        Duration startTimeout,
        boolean maskTimedOutRanks,
        List<BufferObserver> observers) {
    private static final Duration LONGEST_TIMEOUT = Duration.ofDays(365);

    /** Validates everything that does not depend on the other ranks. */
    public BufferOptions {
        Objects.requireNonNull(communicator, "communicator");
        Objects.requireNonNull(topology, "topology");
        Objects.requireNonNull(device, "device");
        Objects.requireNonNull(network, "network");
        Objects.requireNonNull(dispatchConfig, "dispatchConfig");
        Objects.requireNonNull(combineConfig, "combineConfig");
        Objects.requireNonNull(defaults, "defaults");
        observers = List.copyOf(observers);
        if (normal == null && lowLatency == null) {
            throw new IllegalArgumentException(
                    "neither normal nor lowLatency limits are given; a buffer needs at least one of them");
        }
        if (numNvlBytes < 0 || numRdmaBytes < 0) {
            throw new IllegalArgumentException(
                    "numNvlBytes=%s and numRdmaBytes=%s must not be negative"
                            .formatted(numNvlBytes, numRdmaBytes));
        }
        requireTimeout("timeout", timeout);
        if (startTimeout != null) {
            requireTimeout("startTimeout", startTimeout);
        }
        if (lowLatency != null && lowLatency.numExperts() % topology.numRanks() != 0) {
            throw new IllegalArgumentException(
                    "numExperts=%s is not a multiple of numRanks=%s; every rank must hold the same number of experts"
                            .formatted(lowLatency.numExperts(), topology.numRanks()));
        }
        if (communicationStream != null && !communicationStream.device().equals(device)) {
            throw new IllegalArgumentException(
                    ("communicationStream runs on %s, but device=%s; give a stream of the device that the"
                                    + " tensors are on")
                            .formatted(communicationStream.device(), device));
        }
    }

    /** Returns {@code timeout} if it is valid. */
    static Duration requireTimeout(String name, Duration timeout) {
        Objects.requireNonNull(timeout, name);
        if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    name + "=" + timeout + " must be positive and at most " + LONGEST_TIMEOUT);
        }
        return timeout;
    }

    /** The time-outs of calls whose plans give none. */
    @SuppressWarnings("exports") // for the modules of the library
    public CallTimeouts timeouts() {
        return new CallTimeouts(timeout, startTimeout);
    }

    /** How long to wait for all ranks when they open the buffer, rejoin, admit or clean. */
    public Duration meetingTimeout() {
        return timeouts().start();
    }

    /** A copy of these options with what the library chooses where it was left open. */
    public BufferOptions with(Network chosenNetwork, long nvlBytes, long rdmaBytes) {
        return new BufferOptions(
                communicator,
                topology,
                device,
                communicationStream,
                chosenNetwork,
                normal,
                lowLatency,
                nvlBytes,
                rdmaBytes,
                dispatchConfig,
                combineConfig,
                defaults,
                timeout,
                startTimeout,
                maskTimedOutRanks,
                observers);
    }
}
