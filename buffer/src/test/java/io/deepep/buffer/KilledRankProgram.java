package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/**
 * The process of one rank of {@link KilledRankTest}. It ends as any program does: nothing may wait
 * for the dead, nor take the process down.
 */
final class KilledRankProgram {
    /** The rank to be killed once it has said {@link #LOOPING}. */
    static final int VICTIM = 1;

    /** What a rank prints when it has made some exchanges and goes on with them. */
    static final String LOOPING = "looping";

    /** What a survivor prints when it has gone on without the victim, and got what it should. */
    static final String WENT_ON = "went on";

    /** What a survivor prints when it got an error instead, followed by the rank it names. */
    static final String TIMED_OUT = "timed out waiting for rank ";

    private static final Duration START = Duration.ofMinutes(1);

    /** Ranks notice the death at most one exchange after one another. */
    private static final int UNCHECKED = 3;

    private static final int CHECKED = 5;

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
                normal(backend, communicator);
            } else {
                lowLatency(backend, communicator, Boolean.parseBoolean(args[1]));
            }
        }
    }

    /**
     * The victim is killed between two calls, and the others leave it out. On two nodes if the
     * backend can do that: then others stand in for the victim.
     */
    private static void normal(TestBackend backend, Communicator communicator)
            throws InterruptedException {
        int numRanks = communicator.size();
        NormalWorld whole = NormalWorld.bf16(RoutingSpec.of(numRanks, 20, 4 * numRanks, 4), 256);
        try (Buffer buffer =
                Ranks.builder(backend, communicator, Ranks.four(backend))
                        .normal(whole.limits())
                        .timeout(Duration.ofSeconds(10))
                        .maskTimedOutRanks(true)
                        .open()) {
            RankContext context = new RankContext(backend, communicator, buffer);
            NormalRank rank = new NormalRank(context, whole);
            check(rank);
            System.out.println(LOOPING);
            if (communicator.rank() == VICTIM) {
                // In the middle of a call, its death might be known to some only after that.
                new CountDownLatch(1).await();
            }
            try {
                rank.roundTrip();
                throw new AssertionError("a call without rank " + VICTIM + " worked");
            } catch (DeepEpTimeoutException late) {
                if (late.peer() != VICTIM) {
                    System.out.println(TIMED_OUT + late.peer());
                    return;
                }
            }
            check(new NormalRank(context, whole.without(VICTIM)));
            System.out.println(WENT_ON);
        }
    }

    /**
     * The victim is killed in the middle of exchanges. On one node, or where the backend has none
     * like that, on a node for each rank.
     */
    private static void lowLatency(TestBackend backend, Communicator communicator, boolean masks) {
        int numRanks = communicator.size();
        EpTopology oneNode = Ranks.topology(1, numRanks);
        LowLatencyShape shape =
                LowLatencyShape.of(
                        backend.supports(oneNode) ? oneNode : Ranks.topology(numRanks, 1),
                        6,
                        128,
                        4,
                        2 * numRanks);
        try (Buffer buffer =
                Ranks.builder(backend, communicator, shape.topology())
                        .lowLatency(shape.limits())
                        .timeout(Duration.ofSeconds(4))
                        .maskTimedOutRanks(masks)
                        .open()) {
            RankContext context = new RankContext(backend, communicator, buffer);
            LowLatencyRank whole = new LowLatencyRank(context, shape.world());
            LowLatencyRank rest = shape.rest(context, Set.of(VICTIM));
            check(whole);
            System.out.println(LOOPING);
            try {
                while (buffer.queryMask()[VICTIM] == 0) {
                    exchange(whole, 1);
                }
                exchange(rest, UNCHECKED);
                check(rest);
                System.out.println(WENT_ON);
                // For the other survivor, who may be an exchange behind.
                exchange(rest, UNCHECKED);
            } catch (DeepEpTimeoutException late) {
                System.out.println(TIMED_OUT + late.peer());
            }
        }
    }

    private static void check(ExchangeRank<?, ?> rank) {
        for (int round = 0; round < CHECKED; round++) {
            rank.roundTrip();
        }
    }

    private static void exchange(LowLatencyRank rank, int rounds) {
        Buffer buffer = rank.context().buffer();
        for (int round = 0; round < rounds; round++) {
            LowLatencyDispatchResult received =
                    buffer.lowLatencyDispatch(rank.plan(LowLatencyFormat.FP8).build());
            buffer.lowLatencyCombine(rank.home(received.handle()).build());
        }
    }
}
