package io.deepep.buffer;

import io.deepep.Communicator;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.lowlatency.KilledRank;
import java.time.Duration;

/**
 * The process of one rank of {@link KilledRankTest}. It ends as any program does: nothing may wait
 * for the dead, nor take the process down.
 */
final class KilledRankProgram {
    private static final Duration START = Duration.ofMinutes(1);

    private KilledRankProgram() {}

    /**
     * Runs the rank that the environment names.
     *
     * @param args name of the backend; whether its buffer masks ranks that do not come; whether the
     *     calls are those of normal mode, with masks
     */
    public static void main(String[] args) throws InterruptedException {
        TestBackend backend = TestBackends.load().named(args[0]);
        try (Communicator communicator = CommunicatorProvider.load().open(System.getenv(), START)) {
            if (Boolean.parseBoolean(args[2])) {
                KilledPeer.run(backend, communicator, System.out);
            } else {
                KilledRank.run(backend, communicator, Boolean.parseBoolean(args[1]), System.out);
            }
        }
    }
}
