package io.deepep.buffer;

import io.deepep.Backend;
import io.deepep.BufferOptions;
import io.deepep.Network;
import io.deepep.Stream;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.host.HostStream;

/**
 * Turns {@link Backend#AUTO} into the backend of the device, chooses the network of several nodes,
 * and refuses what a backend cannot do before anything is allocated.
 */
final class BackendChoice {
    private static final System.Logger LOG = System.getLogger(BackendChoice.class.getName());

    private BackendChoice() {}

    static BufferOptions resolve(BufferOptions options) {
        return switch (options.backend()) {
            case HOST -> requireHost(options);
            case CUDA -> requireCuda(options);
            case AUTO -> {
                Backend chosen = options.device().isHost() ? Backend.HOST : Backend.CUDA;
                LOG.log(
                        System.Logger.Level.DEBUG,
                        "backend=AUTO: {0}, because tensors lie on {1}",
                        chosen,
                        options.device());
                yield resolve(options.with(chosen, options.network()));
            }
        };
    }

    private static BufferOptions requireHost(BufferOptions options) {
        if (!options.device().isHost()) {
            throw new IllegalArgumentException(
                    "device="
                            + options.device()
                            + " does not go with backend=HOST; leave the device out or use backend=CUDA");
        }
        requireStream(options, HostStream.class);
        return options;
    }

    private static BufferOptions requireCuda(BufferOptions options) {
        CudaDriver.ensureAvailable();
        requireDevice(options.device().index());
        requireStream(options, CudaStream.class);
        return options.topology().isInternode() ? withNetwork(options) : options;
    }

    /** Settings that cannot be are refused here, where the other ranks learn it at once. */
    private static BufferOptions withNetwork(BufferOptions options) {
        BufferOptions chosen = options.with(options.backend(), NetworkChoice.resolve(options));
        if (chosen.network() instanceof Network.Nvshmem nvshmem) {
            NvshmemOptions settings = NvshmemSettings.of(chosen, nvshmem);
            LOG.log(System.Logger.Level.DEBUG, "NVSHMEM: {0}", settings);
        }
        return chosen;
    }

    private static void requireStream(BufferOptions options, Class<? extends Stream> kind) {
        Stream given = options.communicationStream();
        if (given != null && !kind.isInstance(given)) {
            throw new IllegalArgumentException(
                    "communicationStream is a "
                            + given.getClass().getName()
                            + ", which backend="
                            + options.backend()
                            + " cannot run on; give a "
                            + kind.getSimpleName()
                            + " or leave it out");
        }
    }

    private static void requireDevice(int index) {
        int numDevices = CudaDriver.numDevices();
        if (index >= numDevices) {
            throw new IllegalArgumentException(
                    "device=cuda:"
                            + index
                            + " is not one of the "
                            + numDevices
                            + " GPUs visible here; check CUDA_VISIBLE_DEVICES, and start at most one rank per GPU"
                            + " or give ranks the same GPU");
        }
    }
}
