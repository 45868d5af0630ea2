package io.deepep.bench.chaos;

import io.deepep.InProcessGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Ranks that are threads of this process, new ones in each run. */
record ThreadRanks(RankRun run, int numRanks) {
    /**
     * Has all ranks make a run in a new group.
     *
     * @return an outcome for each
     */
    List<Outcome> run(Trial trial) {
        List<FutureTask<Outcome>> ranks = new ArrayList<>();
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            for (int rank = 0; rank < numRanks; rank++) {
                int own = rank;
                FutureTask<Outcome> task =
                        new FutureTask<>(
                                () ->
                                        run.run(
                                                trial,
                                                own,
                                                own,
                                                Signals.NONE,
                                                0,
                                                () -> group.communicator(own),
                                                null));
                ranks.add(task);
                Thread.ofPlatform().daemon().name("chaos-rank-" + rank).start(task);
            }
            long deadline = System.nanoTime() + run.patience().toNanos();
            return ranks.stream().map(rank -> await(rank, deadline)).toList();
        }
    }

    private static Outcome await(FutureTask<Outcome> rank, long deadline) {
        try {
            return rank.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            return Outcome.HUNG;
        } catch (ExecutionException failure) {
            return Outcome.of(failure.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while ranks were running", interrupted);
        }
    }
}
