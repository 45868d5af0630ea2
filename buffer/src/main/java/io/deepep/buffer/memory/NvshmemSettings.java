package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import io.deepep.cuda.nvshmem.NvshmemUserSettings;
import io.deepep.cuda.nvshmem.PeMap;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicAssignment;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import io.deepep.cuda.topology.NicPort;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Derives the settings of a buffer's NVSHMEM from the user's choice, the needs of kernels and the
 * NICs of this GPU.
 */
public final class NvshmemSettings {
    private static final String LOOPBACK = "lo";

    /** With one of these the user says which NICs a process has. */
    private static final List<String> NIC_VARIABLES =
            List.of("NVSHMEM_HCA_LIST", "NVSHMEM_HCA_PE_MAPPING", "UCX_NET_DEVICES");

    private NvshmemSettings() {}

    /** The settings of a rank of this host. */
    public static NvshmemOptions of(BufferOptions options, Network.Nvshmem network) {
        return of(
                options.communicator(),
                network,
                NvshmemQueues.of(options),
                CudaDevice.of(options.device().index()).pciBusId(),
                HostTopology.read(HostTopology.SYSFS),
                NvshmemUserSettings.ofProcess());
    }

    /**
     * The settings of a rank whose kernels need {@code queues}.
     *
     * @param gpu PCI address of its GPU
     * @param host the host whose NICs it uses
     * @param user what the user has set by variables of NVSHMEM's own, which decide what the
     *     network leaves open
     */
    static NvshmemOptions of(
            Communicator communicator,
            Network.Nvshmem network,
            NvshmemQueues queues,
            String gpu,
            HostTopology host,
            NvshmemUserSettings user) {
        NvshmemTransport transport = NvshmemTransport.valueOf(network.transport().name());
        NvshmemOptions settings =
                NvshmemOptions.of(
                        transport,
                        nicHandler(network, user),
                        quality(network.quality(), user),
                        !network.pureRdma() && !user.flag("NVSHMEM_DISABLE_P2P"),
                        bootstrapInterface(communicator, network, user));
        if (transport == NvshmemTransport.NONE) {
            return settings;
        }
        int qpDepth = chosen(network.qpDepth(), user, "NVSHMEM_QP_DEPTH");
        List<NicPort> nics = nics(transport, network, gpu, host, user);
        int numPaths = nics.stream().mapToInt(NicPort::numPaths).max().orElse(1);
        int numQps = Math.max(queues.numQpsPerPe(), numPaths);
        return settings.withQueues(
                user.number("NVSHMEM_IBGDA_NUM_RC_PER_PE").orElse(numQps),
                qpDepth == 0 ? queues.qpDepth() : qpDepth,
                nics.stream().map(NicPort::name).toList());
    }

    private static Network.Quality quality(Network.Quality given, NvshmemUserSettings user) {
        boolean open = given.gidIndex() == Network.Quality.FIND_GID;
        return new Network.Quality(
                open
                        ? user.number("NVSHMEM_IB_GID_INDEX").orElse(Network.Quality.FIND_GID)
                        : given.gidIndex(),
                chosen(given.trafficClass(), user, "NVSHMEM_IB_TRAFFIC_CLASS"),
                chosen(given.serviceLevel(), user, "NVSHMEM_IB_SL"));
    }

    /** The network's value; where it leaves that open with 0, the user's. */
    private static int chosen(int value, NvshmemUserSettings user, String variable) {
        return value != 0 ? value : user.number(variable).orElse(0);
    }

    private static Network.NicHandler nicHandler(
            Network.Nvshmem network, NvshmemUserSettings user) {
        String variable = "NVSHMEM_IBGDA_NIC_HANDLER";
        Optional<String> set = user.text(variable);
        if (network.nicHandler() != Network.NicHandler.AUTO || set.isEmpty()) {
            return network.nicHandler();
        }
        try {
            return Network.NicHandler.valueOf(set.get().strip().toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException unknown) {
            throw new DeepEpUnavailableException(
                    "%s=%s is not a value that NVSHMEM knows".formatted(variable, set.get()),
                    "use auto, gpu, cpu or cpu_host_memory");
        }
    }

    /** Where all ranks are on one host, which may have no other interface, the loopback. */
    private static String bootstrapInterface(
            Communicator communicator, Network.Nvshmem network, NvshmemUserSettings user) {
        boolean oneHost = communicator.localSize() == communicator.size();
        return Stream.of(
                        network.bootstrapInterface(),
                        user.text("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME").orElse(""),
                        oneHost ? LOOPBACK : "")
                .filter(name -> !name.isEmpty())
                .findFirst()
                .orElse(Network.Nvshmem.ANY_INTERFACE);
    }

    private static List<NicPort> nics(
            NvshmemTransport transport,
            Network.Nvshmem network,
            String gpu,
            HostTopology host,
            NvshmemUserSettings user) {
        if (network.nicMapping().isEmpty() && NIC_VARIABLES.stream().anyMatch(user::has)) {
            return List.of(); // NVSHMEM reads them itself.
        }
        NicMapping mapping = NicMapping.of(host, NicOverride.parse(network.nicMapping()));
        NicAssignment own = mapping.of(PciAddress.parse(gpu));
        if (own.nics().isEmpty() && transport.usesHcaList()) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM over %s, but this host has no usable RDMA port"
                            .formatted(network.transport()),
                    "run deepep doctor to see why; if all GPUs reach each other over NVLink, use transport NONE");
        }
        return own.nics();
    }

    /** Whether normal mode may mask ranks. */
    static boolean masks(BufferOptions options) {
        boolean asked = options.network() instanceof Network.Nvshmem network && network.masks();
        return NetworkChoice.masks(options, asked);
    }

    /**
     * Which ranks are PEs of one world. Rails, unless low-latency mode or the stand-ins of masked
     * ranks need all of them, or ranks share a GPU: NVSHMEM then meets over host memory whose name
     * it makes from a PE's number, which two rails on one host would have in common.
     */
    static PeMap peMap(BufferOptions options, GpuSharing sharing) {
        boolean global =
                options.lowLatency() != null || masks(options) || sharing.mostRanksPerGpu() > 1;
        return new PeMap(options.topology(), global ? PeMap.World.GLOBAL : PeMap.World.RAIL);
    }
}
