package io.deepep.buffer;

import io.deepep.Backend;
import io.deepep.BufferOptions;
import io.deepep.error.DeepEpUnavailableException;

/** Turns {@link Backend#AUTO} into a backend that works here, and says why. */
final class BackendChoice {
    private static final System.Logger LOG = System.getLogger(BackendChoice.class.getName());

    private BackendChoice() {}

    static BufferOptions resolve(BufferOptions options) {
        return switch (options.backend()) {
            case HOST -> requireHostDevice(options);
            case CUDA -> throw new DeepEpUnavailableException(
                    "backend=CUDA: this build has no CUDA kernels behind Buffer yet", "use backend=HOST or AUTO", null);
            case AUTO -> {
                LOG.log(System.Logger.Level.INFO, "backend=AUTO: using HOST, because this build has no CUDA kernels behind Buffer yet");
                yield requireHostDevice(with(options, Backend.HOST));
            }
        };
    }

    private static BufferOptions requireHostDevice(BufferOptions options) {
        if (!options.device().isHost()) {
            throw new IllegalArgumentException("device=" + options.device() + " does not go with backend=HOST; leave the device out or use backend=CUDA");
        }
        return options;
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
