package io.deepep.buffer;

import io.deepep.Backend;
import io.deepep.BufferOptions;
import io.deepep.cuda.CudaDriver;
import io.deepep.error.DeepEpUnavailableException;

/**
 * Turns {@link Backend#AUTO} into the backend of the device, and refuses what a backend cannot do
 * before anything is allocated.
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
                yield resolve(with(options, chosen));
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
        return options;
    }

    private static BufferOptions requireCuda(BufferOptions options) {
        CudaDriver.ensureAvailable();
        requireDevice(options.device().index());
        if (options.topology().isInternode() && !options.communicator().isInProcess()) {
            throw new DeepEpUnavailableException(
                    "backend=CUDA has no network between processes yet, but "
                            + options.topology().numRanks()
                            + " processes on nodes of "
                            + options.topology().numNvlRanks()
                            + " are "
                            + options.topology().numRdmaRanks()
                            + " nodes",
                    "use one node, or virtual nodes: ranks as threads of one JVM (InProcessGroup)",
                    null);
        }
        return options;
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

    private static BufferOptions with(BufferOptions options, Backend backend) {
        return new BufferOptions(
                options.communicator(),
                options.topology(),
                backend,
                options.device(),
                options.normal(),
                options.lowLatency(),
                options.numNvlBytes(),
                options.numRdmaBytes(),
                options.dispatchConfig(),
                options.combineConfig(),
                options.timeout(),
                options.maskTimedOutRanks());
    }
}
