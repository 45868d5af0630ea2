package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import io.deepep.cuda.nvshmem.PeMap;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.NicAssignment;
import io.deepep.cuda.topology.NicMapping;
import io.deepep.cuda.topology.NicOverride;
import io.deepep.cuda.topology.NicPort;
import io.deepep.cuda.topology.PciAddress;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;

/**
 * What a buffer's NVSHMEM is started with: the user's choice, what kernels need, this GPU's NICs.
 */
final class NvshmemSettings {
    private static final String LOOPBACK = "lo";

    private NvshmemSettings() {}

    /** Settings of a rank of this host. */
    static NvshmemOptions of(BufferOptions options, Network.Nvshmem network) {
        return of(
                options,
                network,
                CudaDevice.of(options.device().index()).pciBusId(),
                HostTopology.read(HostTopology.SYSFS));
    }

    /**
     * Settings of one rank.
     *
     * @param gpu PCI address of its GPU
     * @param host whose NICs it has
     */
    static NvshmemOptions of(
            BufferOptions options, Network.Nvshmem network, String gpu, HostTopology host) {
        return of(options.communicator(), network, NvshmemQueues.of(options), gpu, host);
    }

    /** Settings of one rank whose kernels need {@code queues}. */
    static NvshmemOptions of(
            Communicator communicator,
            Network.Nvshmem network,
            NvshmemQueues queues,
            String gpu,
            HostTopology host) {
        NvshmemTransport transport = NvshmemTransport.valueOf(network.transport().name());
        NvshmemOptions.Builder builder =
                NvshmemOptions.builder(transport)
                        .nicHandler(NvshmemOptions.NicHandler.valueOf(network.nicHandler().name()))
                        .quality(network.trafficClass(), network.serviceLevel())
                        .numTeams(0)
                        .bootstrapInterface(bootstrapInterface(communicator, network));
        if (network.gidIndex() != Network.Nvshmem.FIND_GID) {
            builder.gidIndex(network.gidIndex());
        }
        if (transport == NvshmemTransport.NONE) {
            return builder.build();
        }
        List<NicPort> nics = nics(transport, network, gpu, host);
        int numPaths = nics.stream().mapToInt(NicPort::numPaths).max().orElse(1);
        return builder.hcas(nics.stream().map(NicPort::name).toList())
                .queues(
                        Math.max(queues.numQpsPerPe(), numPaths),
                        network.qpDepth() == 0 ? queues.qpDepth() : network.qpDepth())
                .build();
    }

    /** Where all ranks are on one host, which may have no other interface, the loopback. */
    private static String bootstrapInterface(Communicator communicator, Network.Nvshmem network) {
        boolean oneHost = communicator.localSize() == communicator.size();
        return network.bootstrapInterface().isEmpty() && oneHost
                ? LOOPBACK
                : network.bootstrapInterface();
    }

    private static List<NicPort> nics(
            NvshmemTransport transport, Network.Nvshmem network, String gpu, HostTopology host) {
        NicMapping mapping = NicMapping.of(host, NicOverride.parse(network.nicMapping()));
        NicAssignment own = mapping.of(PciAddress.parse(gpu));
        if (own.nics().isEmpty() && transport.usesHcaList()) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM over "
                            + network.transport()
                            + ", but this host has no RDMA port that it can use",
                    "see deepep doctor; where all GPUs reach each other over NVLink, use transport NONE",
                    null);
        }
        return own.nics();
    }

    /**
     * Which ranks are PEs of one world. Rails, unless low-latency mode has to reach all ranks, or
     * ranks share a GPU: NVSHMEM then meets over host memory whose name it makes from a PE's
     * number, which two rails on one host would have in common.
     */
    static PeMap peMap(BufferOptions options, GpuSharing sharing) {
        boolean global = options.lowLatency() != null || sharing.mostRanksPerGpu() > 1;
        return new PeMap(options.topology(), global ? PeMap.World.GLOBAL : PeMap.World.RAIL);
    }
}
