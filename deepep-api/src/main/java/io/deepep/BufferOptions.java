package io.deepep;

import io.deepep.observe.BufferObserver;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/**
 * Everything a {@link Buffer} is opened with. Built by {@link Buffer.Builder}.
 *
 * @param communicator this rank's end of the group
 * @param topology this rank's place in it
 * @param device where this rank's tensors lie, which decides what moves the bytes: Java on the
 *     host, kernels on a GPU
 * @param communicationStream the engine's stream that calls run on, or null for one of the buffer's
 *     own
 * @param network how GPUs of different nodes reach each other
 * @param normal limits of normal mode, or null if it is not used
 * @param lowLatency limits of low-latency mode, or null if it is not used
 * @param numNvlBytes NVL buffer size; 0 to take what the limits need
 * @param numRdmaBytes RDMA buffer size; 0 to take what the limits need
 * @param dispatchConfig configuration of normal dispatches
 * @param combineConfig configuration of normal combines
 * @param defaults what these are where nobody chose them: where ranks share a GPU, a configuration
 *     that is equal to its default is lowered to what fits
 * @param timeout how long a wait within a call lasts, at most 365 days
 * @param startTimeout how long to wait until the others begin a call, at most 365 days; null for
 *     the time-out of the call's other waits
 * @param maskTimedOutRanks whether a rank that does not come is masked
 * @param observers see every call; may differ between ranks
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

    /** Validates what can be judged without the other ranks. */
    public BufferOptions {
        Objects.requireNonNull(communicator, "communicator");
        Objects.requireNonNull(topology, "topology");
        Objects.requireNonNull(device, "device");
        Objects.requireNonNull(network, "network");
        Objects.requireNonNull(dispatchConfig, "dispatchConfig");
        Objects.requireNonNull(combineConfig, "combineConfig");
        Objects.requireNonNull(defaults, "defaults");
        Objects.requireNonNull(timeout, "timeout");
        observers = List.copyOf(observers);
        if (normal == null && lowLatency == null) {
            throw new IllegalArgumentException(
                    "neither normal nor lowLatency limits given; a buffer needs at least one mode");
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
                    "numExperts=%s is not a multiple of numRanks=%s"
                            .formatted(lowLatency.numExperts(), topology.numRanks()));
        }
        if (communicationStream != null && !communicationStream.device().equals(device)) {
            throw new IllegalArgumentException(
                    ("communicationStream is one of %s, but device=%s; give a stream of the device that the"
                                    + " tensors lie on")
                            .formatted(communicationStream.device(), device));
        }
    }

    /** {@code timeout}, if it is valid. */
    static Duration requireTimeout(String name, Duration timeout) {
        if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    name + "=" + timeout + " must be positive and at most " + LONGEST_TIMEOUT);
        }
        return timeout;
    }

    /** How long the waits of calls last, unless their plans say otherwise. */
    @SuppressWarnings("exports") // for the modules of the library
    public CallTimeouts timeouts() {
        return new CallTimeouts(timeout, startTimeout);
    }

    /**
     * How long to wait for the other ranks where all have to meet: to open, rejoin, admit or clean.
     */
    public Duration meetingTimeout() {
        return timeouts().start();
    }

    /** The same options with the network that was chosen. */
    public BufferOptions withNetwork(Network chosenNetwork) {
        return new BufferOptions(
                communicator,
                topology,
                device,
                communicationStream,
                chosenNetwork,
                normal,
                lowLatency,
                numNvlBytes,
                numRdmaBytes,
                dispatchConfig,
                combineConfig,
                defaults,
                timeout,
                startTimeout,
                maskTimedOutRanks,
                observers);
    }
}
