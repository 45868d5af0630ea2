package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.testkit.CardFolder;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;

/**
 * The process of one rank of {@link NetworkFaultsTest}: makes verified calls of both modes, during
 * which the card of one rank gets a fault, and says how they ended.
 */
final class NetworkFaultProgram {
    /** Ranks of the group, each on a node of its own. */
    static final int NUM_RANKS = 3;

    /** What a rank says that has made all its calls. */
    static final String WENT_ON = "went on";

    /** What another says, followed by the rank that it waited for in vain. */
    static final String TIMED_OUT = "timed out waiting for rank ";

    /** What it says before each failure of a queue pair that its card has told. */
    static final String CARD_FAILED = "card: ";

    /** Longer than a card takes for the faults that it survives. */
    private static final Duration PATIENCE = Duration.ofSeconds(4);

    private static final int ROUNDS_BEFORE = 2;

    private static final int ROUNDS = 20;

    private NetworkFaultProgram() {}

    /**
     * Runs the rank that the environment names.
     *
     * @param args name of the backend, the fault, the rank that gets it
     */
    public static void main(String[] args) {
        TestBackend backend = TestBackends.load().named(args[0]);
        String fault = args[1];
        int faulty = Integer.parseInt(args[2]);
        LowLatencyShape shape = new LowLatencyShape(NUM_RANKS, 1, 6, 128, 4, 2 * NUM_RANKS);
        RoutingSpec routing = RoutingSpec.of(NUM_RANKS, 20, 4 * NUM_RANKS, 4);
        NormalWorld world = NormalWorld.of(routing, 256, DType.BF16);
        try (Communicator communicator =
                        CommunicatorProvider.load().open(System.getenv(), Ranks.TIMEOUT);
                Buffer buffer =
                        Ranks.builder(backend, communicator, shape.topology())
                                .lowLatency(shape.limits())
                                .normal(world.limits())
                                .timeout(PATIENCE)
                                .open()) {
            RankContext context = new RankContext(backend, communicator, buffer);
            LowLatencyRank lowLatency = new LowLatencyRank(context, shape.world(shape.spec()));
            NormalRank normal = new NormalRank(context, world);
            run(lowLatency, normal, ROUNDS_BEFORE);
            communicator.barrier(Ranks.TIMEOUT);
            if (communicator.rank() == faulty) {
                CardFolder.ofProcess().orElseThrow().faults("rank %s %s".formatted(faulty, fault));
            }
            communicator.barrier(Ranks.TIMEOUT);
            run(lowLatency, normal, ROUNDS);
            System.out.println(WENT_ON);
        } catch (DeepEpTimeoutException late) {
            System.out.println(TIMED_OUT + late.peer());
            for (Throwable why : late.getSuppressed()) {
                System.out.println(CARD_FAILED + why.getMessage());
            }
        }
    }

    private static void run(LowLatencyRank lowLatency, NormalRank normal, int rounds) {
        for (int round = 0; round < rounds; round++) {
            lowLatency.roundTrip(LowLatencyFormat.FP8);
            normal.roundTrip();
        }
    }
}
