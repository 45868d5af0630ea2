package io.deepep.buffer;

import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.KilledRank;
import java.time.Duration;

/**
 * The process of one rank of {@link KilledRankTest}. It ends as any program does: nothing may wait
 * for the dead, nor take the process down.
 */
final class KilledRankProgram {
    /** Where the ranks are, and what is between them. */
    enum Where {
        HOST,
        GPUS,
        NODES,
        NVSHMEM;

        private TestBackend backend() {
            return switch (this) {
                case HOST -> new HostTestBackend();
                case GPUS -> new CudaTestBackend();
                case NODES -> new CudaTestBackend(true);
                case NVSHMEM -> new CudaTestBackend(Network.nvshmem(Network.Transport.NONE));
            };
        }
    }

    private static final Duration START = Duration.ofMinutes(1);

    private KilledRankProgram() {}

    /**
     * Runs the rank that the environment names.
     *
     * @param args {@link Where} it is; whether its buffer masks ranks that do not come
     */
    public static void main(String[] args) {
        TestBackend backend = Where.valueOf(args[0]).backend();
        try (Communicator communicator = CommunicatorProvider.load().open(System.getenv(), START)) {
            KilledRank.run(backend, communicator, Boolean.parseBoolean(args[1]), System.out);
        }
    }
}
