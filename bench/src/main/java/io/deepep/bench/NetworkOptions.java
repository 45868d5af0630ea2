package io.deepep.bench;

import io.deepep.Network;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
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
        NVSHMEM
    }

    @Option(
            names = "--network",
            paramLabel = "NAME",
            description =
                    "Between nodes on GPUs: peer-memory (virtual nodes of one host), nvshmem (a process per rank, see"
                            + " deepep launch) or auto (default: peer-memory on one host, else nvshmem).")
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

    /**
     * The network.
     *
     * @throws UsageException if options are given that another network has no use for
     */
    Network network() {
        if (network == Name.NVSHMEM) {
            return Network.nvshmem(transport())
                    .withNicMapping(nicMapping)
                    .withBootstrapInterface(bootstrapInterface);
        }
        if (transport != null || !nicMapping.isEmpty() || !bootstrapInterface.isEmpty()) {
            throw new UsageException(
                    "--transport, --nic-mapping and --bootstrap-interface need --network=nvshmem");
        }
        return network == Name.AUTO ? Network.auto() : Network.peerMemory();
    }

    private Network.Transport transport() {
        if (transport != null) {
            return transport;
        }
        return LaunchedGroup.isOneHost() ? Network.Transport.NONE : Network.Transport.IBGDA;
    }
}
