package io.deepep;

import java.util.Objects;

/**
 * The way in which GPUs of different nodes reach each other. Within a node, GPUs always access each
 * other's memory; the host backend needs no network.
 */
public sealed interface Network {
    /**
     * Chooses the network when the buffer opens: {@link PeerMemory} if all ranks are on one host
     * (which then holds several virtual nodes), otherwise {@link Nvshmem} over {@link
     * Transport#IBGDA}.
     */
    static Network auto() {
        return new Auto();
    }

    /**
     * Uses NVLink between nodes too: all ranks must be on one host, whose GPUs access each other's
     * memory.
     */
    static Network peerMemory() {
        return new PeerMemory();
    }

    /**
     * Uses NVSHMEM over {@code transport}, with defaults for everything else. Needs one process per
     * rank.
     */
    static Nvshmem nvshmem(Transport transport) {
        return new Nvshmem(
                transport,
                "",
                NicHandler.AUTO,
                0,
                Quality.DEFAULT,
                Nvshmem.ANY_INTERFACE,
                false,
                false);
    }

    /**
     * Uses NICs of the mlx5 family that the GPUs drive themselves, with defaults for everything
     * else. Needs only the NVIDIA driver and rdma-core.
     */
    static Ibgda ibgda() {
        return new Ibgda("", NicHandler.AUTO, 0, Path.DEFAULT, true, false, false);
    }

    /** See {@link #auto}. */
    record Auto() implements Network {
        @Override
        public String toString() {
            return "auto";
        }
    }

    /** See {@link #peerMemory}. */
    record PeerMemory() implements Network {
        @Override
        public String toString() {
            return "peer memory";
        }
    }

    /** How NVSHMEM sends to GPUs whose memory it cannot access directly. */
    enum Transport {
        /** No transport: all GPUs must access each other's memory. */
        NONE,
        /** Verbs, driven by the CPU. */
        IBRC,
        /** UCX, driven by the CPU. */
        UCX,
        /** libfabric, driven by the CPU. */
        LIBFABRIC,
        /** The native interface of mlx5, driven by the CPU. */
        IBDEVX,
        /** Verbs, driven by the GPU. */
        IBGDA
    }

    /** Who rings the doorbells of NICs that GPUs drive. */
    enum NicHandler {
        /** The GPU if the driver allows it, otherwise the CPU. */
        AUTO,
        /** The GPU; {@code deepep doctor} names the driver options that it needs. */
        GPU,
        /** The CPU, through memory that GDRCopy maps. */
        CPU,
        /** The CPU, through host memory. */
        CPU_HOST_MEMORY
    }

    /**
     * Settings of NVSHMEM; see {@link #nvshmem}. The same on every rank, except for {@code
     * nicMapping} and {@code bootstrapInterface}.
     *
     * @param transport what carries data to other nodes
     * @param nicMapping the NICs that each GPU of this host uses, for example {@code
     *     gpu0=mlx5_0,gpu1=mlx5_2:1,*=mlx5_4}; empty to map them by the topology of the host
     * @param nicHandler who rings doorbells under IBGDA
     * @param qpDepth entries of a queue, a power of two from 128 to 32768; 0 for what the kernels
     *     need
     * @param quality address and quality of service
     * @param bootstrapInterface network interface over which processes meet at the start, such as
     *     {@code eth0}; {@link #ANY_INTERFACE} for the loopback if all ranks are on one host, and
     *     otherwise for the one that NVSHMEM chooses
     * @param pureRdma whether the transport carries everything, even to GPUs that NVLink reaches;
     *     if false, kernels store directly into the memory of those GPUs. Normal mode uses NVLink
     *     within a node in either case
     * @param masks whether {@link Buffer#updateMask} can mask ranks in normal mode too: then all
     *     ranks are PEs of one world, and NVSHMEM connects each of them to all others. {@link
     *     Buffer.Builder#maskTimedOutRanks} implies it
     */
    record Nvshmem(
            Transport transport,
            String nicMapping,
            NicHandler nicHandler,
            int qpDepth,
            Quality quality,
            String bootstrapInterface,
            boolean pureRdma,
            boolean masks)
            implements Network {
        /** Value of {@code bootstrapInterface} that names no interface. */
        public static final String ANY_INTERFACE = "";

        /** Rejects nulls; what the values may be is checked when the buffer opens. */
        public Nvshmem {
            Objects.requireNonNull(transport, "transport");
            Objects.requireNonNull(nicMapping, "nicMapping");
            Objects.requireNonNull(nicHandler, "nicHandler");
            Objects.requireNonNull(quality, "quality");
            Objects.requireNonNull(bootstrapInterface, "bootstrapInterface");
        }

        /** With NICs of the user's choice. */
        public Nvshmem withNicMapping(String mapping) {
            return new Nvshmem(
                    transport,
                    mapping,
                    nicHandler,
                    qpDepth,
                    quality,
                    bootstrapInterface,
                    pureRdma,
                    masks);
        }

        /** With another choice of who rings the doorbells. */
        public Nvshmem withNicHandler(NicHandler handler) {
            return new Nvshmem(
                    transport,
                    nicMapping,
                    handler,
                    qpDepth,
                    quality,
                    bootstrapInterface,
                    pureRdma,
                    masks);
        }

        /** With longer or shorter queues. */
        public Nvshmem withQpDepth(int depth) {
            return new Nvshmem(
                    transport,
                    nicMapping,
                    nicHandler,
                    depth,
                    quality,
                    bootstrapInterface,
                    pureRdma,
                    masks);
        }

        /** With an address and a quality of service. */
        public Nvshmem withQuality(Quality newQuality) {
            return new Nvshmem(
                    transport,
                    nicMapping,
                    nicHandler,
                    qpDepth,
                    newQuality,
                    bootstrapInterface,
                    pureRdma,
                    masks);
        }

        /** With the interface over which processes meet at the start. */
        public Nvshmem withBootstrapInterface(String name) {
            return new Nvshmem(
                    transport, nicMapping, nicHandler, qpDepth, quality, name, pureRdma, masks);
        }

        /** Over the transport only, even to GPUs that NVLink reaches. */
        public Nvshmem withPureRdma(boolean pure) {
            return new Nvshmem(
                    transport,
                    nicMapping,
                    nicHandler,
                    qpDepth,
                    quality,
                    bootstrapInterface,
                    pure,
                    masks);
        }

        /** With one world of all ranks, so that ranks can be masked. */
        public Nvshmem withMasks(boolean on) {
            return new Nvshmem(
                    transport,
                    nicMapping,
                    nicHandler,
                    qpDepth,
                    quality,
                    bootstrapInterface,
                    pureRdma,
                    on);
        }
    }

    /**
     * Settings of NICs that GPUs drive themselves; see {@link #ibgda}. The same on every rank,
     * except for {@code nicMapping}.
     *
     * @param nicMapping the NICs that each GPU of this host uses, for example {@code
     *     gpu0=mlx5_0,gpu1=mlx5_2:1,*=mlx5_4}; empty to map them by the topology of the host
     * @param nicHandler who rings doorbells; {@link NicHandler#CPU} is not supported
     * @param qpDepth entries of a queue, a power of two from 256 to 32768; 0 for what the kernels
     *     need
     * @param path how packets travel between NICs
     * @param relaxedOrdering whether writes may overtake each other on PCI; flags never do
     * @param pureRdma whether low-latency mode uses the network even to GPUs of its own node
     * @param masks whether {@link Buffer#updateMask} can mask ranks in normal mode too. Each rank
     *     then has queue pairs to all ranks of other nodes, not only to those with the same index
     *     in their node. {@link Buffer.Builder#maskTimedOutRanks} implies it
     */
    record Ibgda(
            String nicMapping,
            NicHandler nicHandler,
            int qpDepth,
            Path path,
            boolean relaxedOrdering,
            boolean pureRdma,
            boolean masks)
            implements Network {
        /** Rejects nulls; what the values may be is checked when the buffer opens. */
        public Ibgda {
            Objects.requireNonNull(nicMapping, "nicMapping");
            Objects.requireNonNull(nicHandler, "nicHandler");
            Objects.requireNonNull(path, "path");
        }

        /** With NICs of the user's choice. */
        public Ibgda withNicMapping(String mapping) {
            return new Ibgda(mapping, nicHandler, qpDepth, path, relaxedOrdering, pureRdma, masks);
        }

        /** With another choice of who rings the doorbells. */
        public Ibgda withNicHandler(NicHandler handler) {
            return new Ibgda(nicMapping, handler, qpDepth, path, relaxedOrdering, pureRdma, masks);
        }

        /** With longer or shorter queues. */
        public Ibgda withQpDepth(int depth) {
            return new Ibgda(nicMapping, nicHandler, depth, path, relaxedOrdering, pureRdma, masks);
        }

        /** With another path of packets. */
        public Ibgda withPath(Path newPath) {
            return new Ibgda(
                    nicMapping, nicHandler, qpDepth, newPath, relaxedOrdering, pureRdma, masks);
        }

        /** With or without relaxed ordering on PCI. */
        public Ibgda withRelaxedOrdering(boolean relaxed) {
            return new Ibgda(nicMapping, nicHandler, qpDepth, path, relaxed, pureRdma, masks);
        }

        /** Over the network only, even to GPUs that NVLink reaches. */
        public Ibgda withPureRdma(boolean pure) {
            return new Ibgda(nicMapping, nicHandler, qpDepth, path, relaxedOrdering, pure, masks);
        }

        /** With queue pairs to all ranks of other nodes, so that ranks can be masked. */
        public Ibgda withMasks(boolean on) {
            return new Ibgda(nicMapping, nicHandler, qpDepth, path, relaxedOrdering, pureRdma, on);
        }
    }

    /**
     * The address of packets on a RoCE port, and their quality of service.
     *
     * @param gidIndex index in the port's table of addresses, 0 to 255; {@link #FIND_GID} for the
     *     IPv4-mapped RoCE v2 address
     * @param trafficClass traffic class of RoCE, 0 to 255
     * @param serviceLevel service level of InfiniBand, 0 to 15; on RoCE the priority
     */
    record Quality(int gidIndex, int trafficClass, int serviceLevel) {
        /** Value of {@code gidIndex} that makes the library look for the address. */
        public static final int FIND_GID = -1;

        /** The address that the library finds, and the network's default treatment. */
        public static final Quality DEFAULT = new Quality(FIND_GID, 0, 0);
    }

    /**
     * How packets travel between NICs.
     *
     * @param quality address and quality of service
     * @param mtu bytes of a packet, a power of two from 256 to 4096; 0 for the MTU of the ports
     * @param retries how often a packet that is not acknowledged is sent again, 0 to 7
     * @param ackTimeout exponent of the acknowledgement time-out, 1 to 31: a packet is sent again
     *     after 4.096 microseconds * 2^{@code ackTimeout}
     * @param adaptiveRouting whether packets of a queue pair may take different paths
     */
    record Path(Quality quality, int mtu, int retries, int ackTimeout, boolean adaptiveRouting) {
        /** Values that suit most networks. */
        public static final Path DEFAULT = new Path(Quality.DEFAULT, 0, 7, 20, false);

        /** Rejects null; what the values may be is checked when the buffer opens. */
        public Path {
            Objects.requireNonNull(quality, "quality");
        }
    }
}
