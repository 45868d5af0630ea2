package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.cuda.DeviceCode;
import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.lowlatency.cuda.LowLatencyGpu;
import io.deepep.normal.cuda.CudaNormalKernels;

/**
 * Replaces {@link Network#auto} by a network that is possible where the ranks run, and refuses
 * networks that are not, before anything is allocated.
 */
public final class NetworkChoice {
    private static final System.Logger LOG = System.getLogger(NetworkChoice.class.getName());

    private NetworkChoice() {}

    /** The network that {@link Network#auto} stands for; any other network unchanged. */
    public static Network chosen(Network given, boolean isOneHost) {
        if (!(given instanceof Network.Auto)) {
            return given;
        }
        return isOneHost ? Network.peerMemory() : Network.nvshmem(Network.Transport.IBGDA);
    }

    /** Whether ranks may be threads of one process; NVSHMEM allows one rank per process. */
    public static boolean allowsThreads(Network network) {
        return !(network instanceof Network.Nvshmem);
    }

    /**
     * Whether processes can continue without a dead rank, and with a new one in its place. All
     * processes of NVSHMEM must start and end together.
     */
    public static boolean outlivesRanks(Network network) {
        return !(network instanceof Network.Nvshmem);
    }

    /**
     * Whether normal mode may mask ranks over a network.
     *
     * @param asked whether the network was opened with masks
     */
    static boolean masks(BufferOptions options, boolean asked) {
        return options.normal() != null && (asked || options.maskTimedOutRanks());
    }

    /** The network of a buffer on several nodes. */
    public static Network resolve(BufferOptions options) {
        return switch (options.network()) {
            case Network.Auto auto -> {
                Network chosen = chosen(auto, isOneHost(options.communicator()));
                LOG.log(System.Logger.Level.DEBUG, "network=auto: {0}", chosen);
                yield chosen instanceof Network.Nvshmem nvshmem
                        ? requireNvshmem(options, nvshmem)
                        : chosen;
            }
            case Network.PeerMemory given -> requireOneHost(options, given);
            case Network.Nvshmem given -> requireNvshmem(options, given);
            case Network.Ibgda given -> requireCards(options, given);
        };
    }

    private static boolean isOneHost(Communicator communicator) {
        return communicator.localSize() == communicator.size();
    }

    private static Network requireOneHost(BufferOptions options, Network.PeerMemory given) {
        Communicator communicator = options.communicator();
        if (!isOneHost(communicator)) {
            throw new DeepEpUnavailableException(
                    "network=peer memory needs all ranks on one host, but %s of %s are on that of rank %s"
                            .formatted(
                                    communicator.localSize(),
                                    communicator.size(),
                                    communicator.rank()),
                    "use Network.nvshmem or Network.ibgda, or give no network");
        }
        return given;
    }

    /** Whatever cannot be here is refused before the ranks meet. */
    private static Network requireCards(BufferOptions options, Network.Ibgda given) {
        if (!LowLatencyGpu.hasQueueKernels()) {
            throw new DeepEpUnavailableException(
                    "network=IBGDA, but there is no device code on the class path",
                    DeviceCode.cure());
        }
        RdmaDevice.unavailabilityReason()
                .ifPresent(
                        reason -> {
                            throw new DeepEpUnavailableException(
                                    "network=IBGDA, but " + reason,
                                    "install rdma-core (packages libibverbs1 and ibverbs-providers)");
                        });
        IbgdaBuffer planned = new IbgdaBuffer(options, given);
        LOG.log(
                System.Logger.Level.DEBUG,
                "IBGDA: {0}, {1}",
                planned.settings(),
                planned.groups(0));
        return given;
    }

    private static Network requireNvshmem(BufferOptions options, Network.Nvshmem given) {
        if (options.communicator().isInProcess()) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM needs one process per rank, but the ranks are threads of this one",
                    "start a process per rank (deepep launch), or use Network.peerMemory()");
        }
        if (NvshmemInstallation.find().isEmpty()) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM, but NVSHMEM was not found", NvshmemInstallation.CURE);
        }
        boolean built = CudaNormalKernels.haveNetworkKernels() && LowLatencyGpu.hasLibraryKernels();
        if (!built) {
            throw new DeepEpUnavailableException(
                    "network=NVSHMEM, but there are no kernels over NVSHMEM on the class path",
                    DeviceCode.NVSHMEM_CURE);
        }
        return given;
    }
}
