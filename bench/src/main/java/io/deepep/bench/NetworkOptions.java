package io.deepep.bench;

import static java.util.Objects.requireNonNullElse;

import io.deepep.Network;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** How GPUs of different nodes reach each other. */
final class NetworkOptions {
    /** Names of networks, for the command line. */
    enum Name {
        /** {@link Network#auto}. */
        AUTO,
        /** {@link Network#peerMemory}. */
        PEER_MEMORY,
        /** {@link Network#nvshmem}. */
        NVSHMEM,
        /** {@link Network#ibgda}. */
        IBGDA
    }

    @Spec private CommandSpec given;

    @Option(
            names = "--network",
            paramLabel = "NAME",
            description =
                    "Network between nodes on GPUs: peer-memory (virtual nodes of one host), nvshmem"
                            + " (one process per rank, see deepep launch), ibgda (mlx5 NICs that the"
                            + " GPUs drive) or auto (default: peer-memory on one host, else nvshmem).")
    private Name network = Name.AUTO;

    @Option(
            names = "--transport",
            paramLabel = "NAME",
            description =
                    "Transport of nvshmem: none, ibrc, ucx, libfabric, ibdevx or ibgda (default: none"
                            + " on one host, else ibgda).")
    private Network.Transport transport;

    @Option(
            names = "--nic-mapping",
            paramLabel = "TEXT",
            description =
                    "NICs of each GPU of this host, such as gpu0=mlx5_0,*=mlx5_1 (see deepep doctor).")
    private String nicMapping = "";

    @Option(
            names = "--bootstrap-interface",
            paramLabel = "NAME",
            description = "Network interface over which nvshmem's processes meet, such as eth0.")
    private String bootstrapInterface = "";

    @Option(
            names = "--pure-rdma",
            description =
                    "Sends everything between nodes over the network, even to GPUs that NVLink"
                            + " reaches.")
    private boolean pureRdma;

    @Option(
            names = "--nic-handler",
            paramLabel = "NAME",
            description =
                    "Who rings doorbells with ibgda: auto, gpu, cpu (nvshmem only) or cpu-host-memory"
                            + " (default: auto).")
    private Network.NicHandler nicHandler;

    @Option(
            names = "--qp-depth",
            paramLabel = "N",
            description = "Entries of a queue pair (default: what the kernels need).")
    private Integer qpDepth;

    @Option(
            names = "--gid-index",
            paramLabel = "N",
            description = "Index of the address of a RoCE port (default: the library finds it).")
    private Integer gidIndex;

    @Option(
            names = "--traffic-class",
            paramLabel = "N",
            description = "Traffic class of RoCE, 0 to 255 (default: 0).")
    private Integer trafficClass;

    @Option(
            names = "--service-level",
            paramLabel = "N",
            description = "Service level of InfiniBand or RoCE, 0 to 15 (default: 0).")
    private Integer serviceLevel;

    @Option(
            names = "--mtu",
            paramLabel = "BYTES",
            description =
                    "Bytes of ibgda's packets, a power of two from 256 to 4096 (default: the MTU of"
                            + " the ports).")
    private Integer mtu;

    @Option(
            names = "--retries",
            paramLabel = "N",
            description =
                    "How often ibgda resends a packet that is not acknowledged, 0 to 7 (default: 7).")
    private Integer retries;

    @Option(
            names = "--ack-timeout",
            paramLabel = "N",
            description =
                    "How long ibgda waits for an acknowledgement: 4.096 microseconds * 2^N, N from 1"
                            + " to 31 (default: 20).")
    private Integer ackTimeout;

    @Option(
            names = "--adaptive-routing",
            description = "Lets packets of an ibgda queue pair take different paths.")
    private boolean adaptiveRouting;

    @Option(
            names = "--strict-ordering",
            description =
                    "Keeps ibgda's writes in order on PCI (default: they may overtake each other;"
                            + " flags never do).")
    private boolean strictOrdering;

    /**
     * The network.
     *
     * @throws UsageException if options are given that another network has no use for
     */
    Network network() {
        if (network != Name.IBGDA && anyOfIbgda()) {
            throw new UsageException(
                    "--mtu, --retries, --ack-timeout, --adaptive-routing and --strict-ordering need --network=ibgda");
        }
        if (network == Name.NVSHMEM) {
            return Network.nvshmem(transport())
                    .withNicMapping(nicMapping)
                    .withBootstrapInterface(bootstrapInterface)
                    .withNicHandler(requireNonNullElse(nicHandler, Network.NicHandler.AUTO))
                    .withQpDepth(requireNonNullElse(qpDepth, 0))
                    .withQuality(quality())
                    .withPureRdma(pureRdma);
        }
        if (transport != null || !bootstrapInterface.isEmpty()) {
            throw new UsageException(
                    "--transport and --bootstrap-interface need --network=nvshmem");
        }
        if (network == Name.IBGDA) {
            return Network.ibgda()
                    .withNicMapping(nicMapping)
                    .withNicHandler(requireNonNullElse(nicHandler, Network.NicHandler.AUTO))
                    .withQpDepth(requireNonNullElse(qpDepth, 0))
                    .withPath(path())
                    .withRelaxedOrdering(!strictOrdering)
                    .withPureRdma(pureRdma);
        }
        boolean anyOfCards =
                !nicMapping.isEmpty()
                        || pureRdma
                        || Stream.of(nicHandler, qpDepth, gidIndex, trafficClass, serviceLevel)
                                .anyMatch(Objects::nonNull);
        if (anyOfCards) {
            throw new UsageException(
                    "--pure-rdma, --nic-mapping, --nic-handler, --qp-depth, --gid-index, --traffic-class and"
                            + " --service-level need --network=nvshmem or --network=ibgda");
        }
        return network == Name.AUTO ? Network.auto() : Network.peerMemory();
    }

    /** As the command line names it. */
    static String nameOf(Network network) {
        return Names.of(
                switch (network) {
                    case Network.Auto _ -> Name.AUTO;
                    case Network.PeerMemory _ -> Name.PEER_MEMORY;
                    case Network.Nvshmem _ -> Name.NVSHMEM;
                    case Network.Ibgda _ -> Name.IBGDA;
                });
    }

    /** The options that were given, for the command line of another process. */
    List<String> arguments() {
        return arguments(given);
    }

    /** All options that were given to a command, or to what it shares with others. */
    static List<String> arguments(CommandSpec given) {
        return given.options().stream()
                .filter(option -> !option.originalStringValues().isEmpty())
                .map(
                        option ->
                                option.longestName()
                                        + "="
                                        + String.join(",", option.originalStringValues()))
                .toList();
    }

    private boolean anyOfIbgda() {
        return adaptiveRouting
                || strictOrdering
                || Stream.of(mtu, retries, ackTimeout).anyMatch(Objects::nonNull);
    }

    private Network.Quality quality() {
        Network.Quality usual = Network.Quality.DEFAULT;
        return new Network.Quality(
                requireNonNullElse(gidIndex, usual.gidIndex()),
                requireNonNullElse(trafficClass, usual.trafficClass()),
                requireNonNullElse(serviceLevel, usual.serviceLevel()));
    }

    private Network.Path path() {
        Network.Path usual = Network.Path.DEFAULT;
        return new Network.Path(
                quality(),
                requireNonNullElse(mtu, usual.mtu()),
                requireNonNullElse(retries, usual.retries()),
                requireNonNullElse(ackTimeout, usual.ackTimeout()),
                adaptiveRouting);
    }

    private Network.Transport transport() {
        if (transport != null) {
            return transport;
        }
        return LaunchedGroup.isOneHost() ? Network.Transport.NONE : Network.Transport.IBGDA;
    }
}
