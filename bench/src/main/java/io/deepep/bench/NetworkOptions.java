package io.deepep.bench;

import io.deepep.Network;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
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

    private static final List<String> OF_IBGDA =
            List.of(
                    "--mtu",
                    "--retries",
                    "--ack-timeout",
                    "--adaptive-routing",
                    "--strict-ordering");
    private static final List<String> OF_NVSHMEM = List.of("--transport", "--bootstrap-interface");
    private static final List<String> OF_CARDS =
            List.of(
                    "--pure-rdma",
                    "--nic-mapping",
                    "--nic-handler",
                    "--qp-depth",
                    "--gid-index",
                    "--traffic-class",
                    "--service-level");

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
    private Network.NicHandler nicHandler = Network.NicHandler.AUTO;

    @Option(
            names = "--qp-depth",
            paramLabel = "N",
            description = "Entries of a queue pair (default: what the kernels need).")
    private int qpDepth;

    @Option(
            names = "--gid-index",
            paramLabel = "N",
            description = "Index of the address of a RoCE port (default: the library finds it).")
    private int gidIndex = Network.Quality.DEFAULT.gidIndex();

    @Option(
            names = "--traffic-class",
            paramLabel = "N",
            description = "Traffic class of RoCE, 0 to 255 (default: 0).")
    private int trafficClass = Network.Quality.DEFAULT.trafficClass();

    @Option(
            names = "--service-level",
            paramLabel = "N",
            description = "Service level of InfiniBand or RoCE, 0 to 15 (default: 0).")
    private int serviceLevel = Network.Quality.DEFAULT.serviceLevel();

    @Option(
            names = "--mtu",
            paramLabel = "BYTES",
            description =
                    "Bytes of ibgda's packets, a power of two from 256 to 4096 (default: the MTU of"
                            + " the ports).")
    private int mtu = Network.Path.DEFAULT.mtu();

    @Option(
            names = "--retries",
            paramLabel = "N",
            description =
                    "How often ibgda resends a packet that is not acknowledged, 0 to 7 (default: 7).")
    private int retries = Network.Path.DEFAULT.retries();

    @Option(
            names = "--ack-timeout",
            paramLabel = "N",
            description =
                    "How long ibgda waits for an acknowledgement: 4.096 microseconds * 2^N, N from 1"
                            + " to 31 (default: 20).")
    private int ackTimeout = Network.Path.DEFAULT.ackTimeout();

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
        if (network != Name.IBGDA) {
            refuse(OF_IBGDA, "--network=ibgda");
        }
        if (network != Name.NVSHMEM) {
            refuse(OF_NVSHMEM, "--network=nvshmem");
        }
        if (network == Name.AUTO || network == Name.PEER_MEMORY) {
            refuse(OF_CARDS, "--network=nvshmem or --network=ibgda");
        }
        return switch (network) {
            case AUTO -> Network.auto();
            case PEER_MEMORY -> Network.peerMemory();
            case NVSHMEM ->
                    Network.nvshmem(transport())
                            .withNicMapping(nicMapping)
                            .withBootstrapInterface(bootstrapInterface)
                            .withNicHandler(nicHandler)
                            .withQpDepth(qpDepth)
                            .withQuality(quality())
                            .withPureRdma(pureRdma);
            case IBGDA ->
                    Network.ibgda()
                            .withNicMapping(nicMapping)
                            .withNicHandler(nicHandler)
                            .withQpDepth(qpDepth)
                            .withPath(
                                    new Network.Path(
                                            quality(), mtu, retries, ackTimeout, adaptiveRouting))
                            .withRelaxedOrdering(!strictOrdering)
                            .withPureRdma(pureRdma);
        };
    }

    /**
     * Demands, for ranks on the host, that no network was named.
     *
     * @throws UsageException if one was, as no rows would go over it
     */
    void requireUnnamed() {
        if (network != Name.AUTO) {
            throw new UsageException(
                    "--network=%s connects GPUs; give --backend=cuda, or leave it out"
                            .formatted(Names.of(network)));
        }
    }

    private void refuse(List<String> options, String needed) {
        if (given(given).anyMatch(option -> options.contains(option.longestName()))) {
            String all = String.join(", ", options.subList(0, options.size() - 1));
            throw new UsageException(all + " and " + options.getLast() + " need " + needed);
        }
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

    /**
     * The options that were given to a command, or to what it shares with others, for the command
     * line of another process.
     */
    static List<String> arguments(CommandSpec given) {
        return given(given)
                .map(
                        option ->
                                option.longestName()
                                        + "="
                                        + String.join(",", option.originalStringValues()))
                .toList();
    }

    private static Stream<OptionSpec> given(CommandSpec given) {
        return given.options().stream().filter(option -> !option.originalStringValues().isEmpty());
    }

    private Network.Quality quality() {
        return new Network.Quality(gidIndex, trafficClass, serviceLevel);
    }

    private Network.Transport transport() {
        if (transport != null) {
            return transport;
        }
        return LaunchedGroup.isOneHost() ? Network.Transport.NONE : Network.Transport.IBGDA;
    }
}
