package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Set;

/**
 * One rank of a group of processes that makes low-latency exchanges until somebody kills the
 * process of {@link #VICTIM}; the others say what they learn of it, and leave. On one node, or
 * where the backend has none like that, on a node for each rank.
 */
public final class KilledRank {
    /** The rank to be killed once it has said {@link #LOOPING}. */
    public static final int VICTIM = 1;

    /** Ranks of the group. */
    public static final int NUM_RANKS = 3;

    /** What a rank prints when it has made some exchanges and goes on with them. */
    public static final String LOOPING = "looping";

    /** What a survivor prints when it has gone on without the victim, and got what it should. */
    public static final String WENT_ON = "went on";

    /** What a survivor prints when it got an error instead, followed by the rank it names. */
    public static final String TIMED_OUT = "timed out waiting for rank ";

    private static final Duration PATIENCE = Duration.ofSeconds(4);

    /** Ranks notice the death at most one exchange after one another. */
    private static final int UNCHECKED = 3;

    private static final int CHECKED = 5;

    private final RankContext context;
    private final LowLatencyRank whole;
    private final LowLatencyRank rest;
    private final PrintStream out;

    private KilledRank(RankContext context, LowLatencyShape shape, PrintStream out) {
        this.context = context;
        this.out = out;
        whole = new LowLatencyRank(context, shape.world());
        rest = new LowLatencyRank(context, shape.without(Set.of(VICTIM)));
    }

    /**
     * Does what the rank does, and closes its buffer; the victim never returns.
     *
     * @param masks whether the buffer masks ranks that do not come
     */
    public static void run(
            TestBackend backend, Communicator communicator, boolean masks, PrintStream out) {
        LowLatencyShape shape = shape(backend);
        try (Buffer buffer =
                Ranks.builder(backend, communicator, shape.topology())
                        .lowLatency(shape.limits())
                        .timeout(PATIENCE)
                        .maskTimedOutRanks(masks)
                        .open()) {
            RankContext context = new RankContext(backend, communicator, buffer);
            new KilledRank(context, shape, out).run();
        }
    }

    private static LowLatencyShape shape(TestBackend backend) {
        boolean oneNode = backend.supports(Ranks.topology(1, NUM_RANKS));
        return new LowLatencyShape(
                oneNode ? 1 : NUM_RANKS, oneNode ? NUM_RANKS : 1, 6, 128, 4, 2 * NUM_RANKS);
    }

    private void run() {
        for (int round = 0; round < CHECKED; round++) {
            whole.roundTrip();
        }
        out.println(LOOPING);
        try {
            while (context.buffer().queryMask()[VICTIM] == 0) {
                exchange(whole, 1);
            }
            goOn();
        } catch (DeepEpTimeoutException late) {
            out.println(TIMED_OUT + late.peer());
        }
    }

    private void goOn() {
        exchange(rest, UNCHECKED);
        for (int round = 0; round < CHECKED; round++) {
            rest.roundTrip();
        }
        out.println(WENT_ON);
        // For the other survivor, who may be an exchange behind.
        exchange(rest, UNCHECKED);
    }

    private void exchange(LowLatencyRank rank, int rounds) {
        Buffer buffer = context.buffer();
        for (int round = 0; round < rounds; round++) {
            LowLatencyDispatchResult received =
                    buffer.lowLatencyDispatch(rank.plan(LowLatencyFormat.FP8).build());
            buffer.lowLatencyCombine(rank.home(received.handle()).build());
        }
    }
}
