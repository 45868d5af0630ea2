package io.deepep.buffer;

import io.deepep.Communicator;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.KilledRank;
import java.time.Duration;

/** The process of one rank of {@link KilledRankTest}. */
final class KilledRankProgram {
    private static final Duration START = Duration.ofMinutes(1);

    private KilledRankProgram() {}

    /**
     * Runs the rank that the environment names.
     *
     * @param args whether it works on a GPU; whether its buffer masks ranks that do not come
     */
    public static void main(String[] args) {
        TestBackend backend =
                Boolean.parseBoolean(args[0]) ? new CudaTestBackend() : new HostTestBackend();
        Communicator communicator = CommunicatorProvider.load().open(System.getenv(), START);
        KilledRank.run(backend, communicator, Boolean.parseBoolean(args[1]), System.out);
        System.out.flush();
        // Without leaving the group, which waits for the dead.
        Runtime.getRuntime().halt(0);
    }
}
