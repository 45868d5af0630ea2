package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.KilledRank;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.io.PrintStream;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * One rank of a group of processes that makes verified calls of normal mode. The process of {@link
 * KilledRank#VICTIM} is killed between two of them; the others leave it out and go on. On two nodes
 * if the backend can do that: then others stand in for the victim.
 */
final class KilledPeer {
    /** Ranks of the group. */
    static final int NUM_RANKS = 4;

    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final int CHECKED = 5;

    private KilledPeer() {}

    /** Does what the rank does, and closes its buffer; the victim never returns. */
    static void run(TestBackend backend, Communicator communicator, PrintStream out)
            throws InterruptedException {
        EpTopology topology = Ranks.four(backend);
        NormalWorld whole =
                NormalWorld.of(RoutingSpec.of(NUM_RANKS, 20, 4 * NUM_RANKS, 4), 256, DType.BF16);
        try (Buffer buffer =
                Ranks.builder(backend, communicator, topology)
                        .normal(whole.limits())
                        .timeout(PATIENCE)
                        .maskTimedOutRanks(true)
                        .open()) {
            RankContext context = new RankContext(backend, communicator, buffer);
            NormalRank rank = new NormalRank(context, whole);
            for (int round = 0; round < CHECKED; round++) {
                rank.roundTrip();
            }
            out.println(KilledRank.LOOPING);
            if (communicator.rank() == KilledRank.VICTIM) {
                // In the middle of a call, its death might be known to some only after that.
                new CountDownLatch(1).await();
            }
            int named = lose(rank);
            if (named != KilledRank.VICTIM) {
                out.println(KilledRank.TIMED_OUT + named);
                return;
            }
            NormalRank survivor = new NormalRank(context, whole.without(KilledRank.VICTIM));
            for (int round = 0; round < CHECKED; round++) {
                survivor.roundTrip();
            }
            out.println(KilledRank.WENT_ON);
        }
    }

    private static int lose(NormalRank rank) {
        try {
            rank.roundTrip();
        } catch (DeepEpTimeoutException late) {
            return late.peer();
        }
        throw new AssertionError("a call without rank " + KilledRank.VICTIM + " worked");
    }
}
