package io.deepep;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.observe.BufferObserver;
import io.deepep.spi.BufferProvider;
import io.deepep.spi.NodeSize;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * The options that a {@link Buffer.Builder} has been given, and how they become {@link
 * BufferOptions}.
 */
final class GivenOptions {
    private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

    final Communicator communicator;
    int ranksPerNode;
    Device device = Device.host();
    Stream communicationStream;
    Network network = Network.auto();
    NormalLimits normal;
    LowLatencyLimits lowLatency;
    long numNvlBytes;
    long numRdmaBytes;
    Config dispatchConfig;
    Config combineConfig;
    ProfileFile profile;
    Duration timeout = DEFAULT_TIMEOUT;
    Duration startTimeout;
    boolean maskTimedOutRanks;
    final List<BufferObserver> observers = new ArrayList<>();

    GivenOptions(Communicator communicator) {
        this.communicator = Objects.requireNonNull(communicator, "communicator");
    }

    /** See {@link Buffer.Builder#open}. */
    Buffer open() {
        return open(NodeSize.Call.OPEN, "open its buffer", BufferProvider::open);
    }

    /** See {@link Buffer.Builder#join}. */
    Buffer join() {
        return open(NodeSize.Call.JOIN, "join or admit", BufferProvider::join);
    }

    private Buffer open(
            NodeSize.Call call,
            String text,
            BiFunction<BufferProvider, BufferOptions, Buffer> open) {
        BufferProvider provider = BufferProvider.load();
        try {
            return open.apply(provider, agreed(provider, call));
        } catch (DeepEpTimeoutException late) {
            throw late.inMeeting(text);
        }
    }

    /** Builds the options with the node size that all ranks agree on. Collective. */
    BufferOptions agreed(BufferProvider provider, NodeSize.Call call) {
        ProfileFile measured = lacksConfigs() ? profile(provider) : null;
        if (ranksPerNode != 0) {
            requireWholeNodes();
            BufferOptions options = of(ranksPerNode, measured, provider);
            NodeSize.agree(communicator, call, ranksPerNode, "", options.meetingTimeout());
            return options;
        }
        Duration limit = of(1, null, provider).meetingTimeout();
        String domain = provider.nvlinkDomain(device);
        int nodeSize = NodeSize.agree(communicator, call, 0, domain, limit);
        return of(nodeSize, measured, provider);
    }

    private void requireWholeNodes() {
        if (communicator.size() % ranksPerNode != 0) {
            throw new IllegalArgumentException(
                    "ranksPerNode=%s does not divide the %s ranks of the group; give a number that does"
                            .formatted(ranksPerNode, communicator.size()));
        }
    }

    private boolean lacksConfigs() {
        return normal != null && (dispatchConfig == null || combineConfig == null);
    }

    /** The profile, or null if there is none; on the host, the property is ignored. */
    private ProfileFile profile(BufferProvider provider) {
        ProfileFile chosen =
                profile != null || device.isHost() ? profile : ProfileFile.ofProperty();
        if (chosen != null) {
            chosen.requireGpu(provider, device);
        }
        return chosen;
    }

    /** Builds and validates the options for nodes of {@code nodeSize} ranks. */
    private BufferOptions of(int nodeSize, ProfileFile measured, BufferProvider provider) {
        EpTopology topology = new EpTopology(communicator.rank(), communicator.size(), nodeSize);
        NormalDefaults defaults = defaults(topology, measured, provider);
        return new BufferOptions(
                communicator,
                topology,
                device,
                communicationStream,
                network,
                normal,
                lowLatency,
                numNvlBytes,
                numRdmaBytes,
                dispatchConfig != null ? dispatchConfig : defaults.dispatch(),
                combineConfig != null ? combineConfig : defaults.combine(),
                defaults,
                timeout,
                startTimeout,
                maskTimedOutRanks,
                observers);
    }

    private NormalDefaults defaults(
            EpTopology topology, ProfileFile measured, BufferProvider provider) {
        if (!lacksConfigs()) { // a GPU's management library starts slowly
            return NormalDefaults.recommended(topology.numRanks());
        }
        if (measured == null) {
            return NormalDefaults.of(topology, device, provider);
        }
        measured.requireNodes(topology);
        return NormalDefaults.of(topology, measured.profile());
    }
}
