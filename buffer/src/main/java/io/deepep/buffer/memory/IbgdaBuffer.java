package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.ibgda.Ibgda;
import io.deepep.cuda.ibgda.IbgdaOptions;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import io.deepep.cuda.topology.NicPort;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.normal.cuda.RailWay;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Layout;
import io.deepep.spi.Undo;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * The RDMA buffer of a rank whose kernels drive network cards themselves: the ranks of its node
 * have it mapped, those of other nodes reach it by queue pairs, of which each mode has its own, and
 * normal mode more where ranks may be masked.
 *
 * <pre>
 *   RDMA buffer | outbox of low-latency mode | where atomics return to
 * </pre>
 */
record IbgdaBuffer(BufferOptions options, Network.Ibgda network) {
    /**
     * Of blocks that send, and of those that take, so that none of these waits for rows of the
     * other kind; blocks of a kind may wait for each other, while a rank is masked.
     */
    private static final int QUEUES_TO_STAND_IN = 2;

    /** Allocates it, and connects the ranks: collective. */
    RdmaBuffer open(BufferSizes sizes, CudaContext context, HeapRanks ranks) {
        long outbox = Layout.alignToLine(options.numRdmaBytes());
        long landings = Layout.alignToLine(outbox + sizes.outboxBytes());
        long numBytes = landings + IbgdaOptions.NetworkMemory.LANDING_BYTES;
        Undo made = new Undo();
        try {
            CudaHeaps heaps =
                    made.made(
                            CudaHeaps.open(ranks, context, numBytes, CudaHeaps.Reach.NODE),
                            CudaHeaps::close);
            List<IbgdaOptions.Group> groups = groups(sizes.normalRdmaBytes());
            Ibgda ibgda =
                    made.made(
                            Ibgda.open(
                                    ranks.communicator(),
                                    context,
                                    settings(),
                                    new IbgdaOptions.NetworkMemory(
                                            heaps.localAddress(), numBytes, landings),
                                    groups),
                            Ibgda::close);
            long normalQueues = options.normal() == null ? 0 : ibgda.table(0);
            long lowLatencyQueues =
                    options.lowLatency() == null ? 0 : ibgda.table(groups.size() - 1);
            return new RdmaBuffer(
                    options.topology().rank(),
                    RdmaHeaps.over(normalQueues, standIns(ibgda), mapped(heaps)),
                    outbox,
                    new RdmaBuffer.Queues(lowLatencyQueues, ibgda),
                    Optional.of(heaps),
                    made::close);
        } catch (RuntimeException | Error failure) {
            made.close(failure);
            throw failure;
        }
    }

    /**
     * The queue pairs of a rank.
     *
     * @param lowLatencyBase where low-latency mode's part of the RDMA buffer begins
     * @throws IllegalArgumentException if their depth cannot be
     */
    List<IbgdaOptions.Group> groups(long lowLatencyBase) {
        List<IbgdaOptions.Group> groups = new ArrayList<>();
        if (options.normal() != null) {
            groups.add(normal());
            if (hasStandIns()) {
                groups.add(standIns());
            }
        }
        if (options.lowLatency() != null) {
            groups.add(lowLatency(lowLatencyBase));
        }
        return groups;
    }

    /** Where kernels find queues to stand-ins, 0 for none; empty where ranks are not masked. */
    private OptionalLong standIns(Ibgda ibgda) {
        if (!NetworkChoice.masks(options, network.masks())) {
            return OptionalLong.empty();
        }
        return OptionalLong.of(hasStandIns() ? ibgda.table(1) : 0);
    }

    private boolean hasStandIns() {
        return NetworkChoice.masks(options, network.masks())
                && options.topology().numNvlRanks() > 1;
    }

    /** What kernels may store into; normal mode uses NVL buffers for that. */
    private List<Long> mapped(CudaHeaps heaps) {
        int own = options.topology().rank();
        return IntStream.range(0, options.topology().numRanks())
                .mapToObj(
                        peer ->
                                network.pureRdma() && peer != own
                                        ? Long.valueOf(0)
                                        : heaps.addresses().get(peer))
                .toList();
    }

    /** Normal mode reaches the rank with its place on every other node. */
    private IbgdaOptions.Group normal() {
        EpTopology topology = options.topology();
        NvshmemQueues queues =
                NvshmemQueues.normal(options.dispatchConfig().covering(options.combineConfig()));
        return group(railPeers(topology), topology.rdmaRank(), 0, queues);
    }

    /** By node; -1 for that of this rank. */
    static List<Integer> railPeers(EpTopology topology) {
        return IntStream.range(0, topology.numRdmaRanks())
                .map(
                        node ->
                                node == topology.rdmaRank()
                                        ? -1
                                        : topology.rankOf(node, topology.nvlRank()))
                .boxed()
                .toList();
    }

    /** The ranks of other nodes that forward for this one while its peers are masked. */
    private IbgdaOptions.Group standIns() {
        EpTopology topology = options.topology();
        Config config = options.dispatchConfig().covering(options.combineConfig());
        NvshmemQueues queues =
                new NvshmemQueues(QUEUES_TO_STAND_IN, NvshmemQueues.normal(config).qpDepth());
        int ownPlace = RailWay.standInPlace(topology, topology.rank());
        return group(RailWay.standIns(topology), ownPlace, 0, queues);
    }

    /** Low-latency mode reaches all ranks whose memory is not mapped. */
    private IbgdaOptions.Group lowLatency(long base) {
        EpTopology topology = options.topology();
        IntPredicate mapped =
                peer ->
                        peer == topology.rank()
                                || (!network.pureRdma()
                                        && CudaHeaps.Reach.NODE.includes(topology, peer));
        List<Integer> peers =
                IntStream.range(0, topology.numRanks())
                        .map(peer -> mapped.test(peer) ? -1 : peer)
                        .boxed()
                        .toList();
        NvshmemQueues queues = NvshmemQueues.lowLatency(options.lowLatency(), topology.numRanks());
        return group(peers, topology.rank(), base, queues);
    }

    private IbgdaOptions.Group group(
            List<Integer> peers, int ownPlace, long base, NvshmemQueues queues) {
        List<NicPort> nics = nics();
        int numPaths = nics.stream().mapToInt(NicPort::numPaths).max().orElse(1);
        return new IbgdaOptions.Group(
                peers,
                ownPlace,
                base,
                Math.max(queues.numQpsPerPe(), Math.max(numPaths, nics.size())),
                network.qpDepth() == 0 ? queues.qpDepth() : network.qpDepth());
    }

    /**
     * How a rank's queue pairs are opened.
     *
     * @throws DeepEpUnavailableException if that cannot be here
     */
    IbgdaOptions settings() {
        return new IbgdaOptions(
                nics().stream()
                        .map(
                                nic ->
                                        new IbgdaOptions.Port(
                                                nic.hca(),
                                                nic.port(),
                                                HostTopology.gidTypes(HostTopology.SYSFS, nic)))
                        .toList(),
                network.path(),
                doorbells(),
                true,
                network.relaxedOrdering(),
                options.timeout(),
                options.meetingTimeout());
    }

    private IbgdaOptions.Doorbells doorbells() {
        return switch (network.nicHandler()) {
            case AUTO -> IbgdaOptions.Doorbells.AUTO;
            case GPU -> IbgdaOptions.Doorbells.GPU;
            case CPU_HOST_MEMORY -> IbgdaOptions.Doorbells.THREAD;
            case CPU ->
                    throw new DeepEpUnavailableException(
                            "nicHandler=CPU needs GDRCopy, which network=IBGDA does not use",
                            "use auto, gpu or cpu-host-memory");
        };
    }

    private List<NicPort> nics() {
        HostTopology host = HostTopology.read(HostTopology.SYSFS);
        String gpu = CudaDevice.of(options.device().index()).pciBusId();
        List<NicPort> nics =
                NicMapping.of(host, NicOverride.parse(network.nicMapping()))
                        .of(PciAddress.parse(gpu))
                        .nics();
        if (nics.isEmpty()) {
            throw new DeepEpUnavailableException(
                    "network=IBGDA, but this host has no usable RDMA port",
                    "run deepep doctor to see why; GPUs of one host can use Network.peerMemory()");
        }
        return nics;
    }
}
