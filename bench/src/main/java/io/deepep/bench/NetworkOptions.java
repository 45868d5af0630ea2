package io.deepep.bench;

import io.deepep.Network;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import java.util.Objects;
import java.util.stream.Stream;
import picocli.CommandLine.Option;

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

    @Option(
            names = "--network",
            paramLabel = "NAME",
            description =
                    "Between nodes on GPUs: peer-memory (virtual nodes of one host), nvshmem (a process per rank,"
                            + " see deepep launch), ibgda (mlx5 cards that the GPUs drive) or auto (default: peer-memory on one host, else nvshmem).")
    private Name network = Name.AUTO;

    @Option(
            names = "--transport",
            paramLabel = "NAME",
            description =
                    "What nvshmem sends with: none, ibrc, ucx, libfabric, ibdevx or ibgda (default: none on one"
                            + " host, else ibgda).")
    private Network.Transport transport;

    @Option(
            names = "--nic-mapping",
            paramLabel = "TEXT",
            description =
                    "NICs of each GPU of this host, as gpu0=mlx5_0,*=mlx5_1 (see deepep doctor).")
    private String nicMapping = "";

    @Option(
            names = "--bootstrap-interface",
            paramLabel = "NAME",
            description = "Interface over which nvshmem's processes meet, as eth0.")
    private String bootstrapInterface = "";

    @Option(
            names = "--pure-rdma",
            description =
                    "Let the network carry everything between nodes, also to GPUs that NVLink reaches.")
    private boolean pureRdma;

    @Option(
            names = "--nic-handler",
            paramLabel = "NAME",
            description =
                    "Who rings doorbells under ibgda: auto, gpu, cpu (nvshmem alone) or cpu-host-memory (default: auto).")
    private Network.NicHandler nicHandler;

    @Option(
            names = "--qp-depth",
            paramLabel = "N",
            description = "Entries of a queue pair (default: what the kernels need).")
    private Integer qpDepth;

    @Option(
            names = "--gid-index",
            paramLabel = "N",
            description = "Address of a RoCE port (default: nvshmem finds it).")
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

    /**
     * The network.
     *
     * @throws UsageException if options are given that another network has no use for
     */
    Network network() {
        if (network == Name.NVSHMEM) {
            return Network.nvshmem(transport())
                    .withNicMapping(nicMapping)
                    .withBootstrapInterface(bootstrapInterface)
                    .withNicHandler(orElse(nicHandler, Network.NicHandler.AUTO))
                    .withQpDepth(orElse(qpDepth, 0))
                    .withQuality(
                            orElse(gidIndex, Network.Nvshmem.FIND_GID),
                            orElse(trafficClass, 0),
                            orElse(serviceLevel, 0))
                    .withPureRdma(pureRdma);
        }
        if (transport != null || !bootstrapInterface.isEmpty()) {
            throw new UsageException(
                    "--transport and --bootstrap-interface need --network=nvshmem");
        }
        if (network == Name.IBGDA) {
            return Network.ibgda()
                    .withNicMapping(nicMapping)
                    .withNicHandler(orElse(nicHandler, Network.NicHandler.AUTO))
                    .withQpDepth(orElse(qpDepth, 0))
                    .withPath(
                            Network.Path.DEFAULT.withQuality(
                                    orElse(gidIndex, Network.Path.FIND_GID),
                                    orElse(trafficClass, 0),
                                    orElse(serviceLevel, 0)))
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

    private Network.Transport transport() {
        if (transport != null) {
            return transport;
        }
        return LaunchedGroup.isOneHost() ? Network.Transport.NONE : Network.Transport.IBGDA;
    }

    private static <T> T orElse(T given, T otherwise) {
        return given == null ? otherwise : given;
    }
}
