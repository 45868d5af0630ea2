package io.deepep.bench.chaos;

import io.deepep.InProcessGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Ranks that are threads of this process. */
final class ThreadWorld implements World {
    private final RankRun run;
    private final int numRanks;
    private Usage before;

    ThreadWorld(RankRun run, int numRanks) {
        this.run = run;
        this.numRanks = numRanks;
    }

    @Override
    public List<Outcome> run(Trial trial) {
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
                                                Signals.NONE,
                                                () -> group.communicator(own)));
                ranks.add(task);
                Thread.ofPlatform().daemon().name("chaos-rank-" + rank).start(task);
            }
            long deadline = System.nanoTime() + run.patience().toNanos();
            List<Outcome> outcomes = ranks.stream().map(rank -> await(rank, deadline)).toList();
            if (before == null) {
                before = Usage.ofThisProcess();
            }
            return outcomes;
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

    @Override
    public int size() {
        return numRanks;
    }

    @Override
    public int replace() {
        return 0; // threads come anew with each run
    }

    @Override
    public Usage leftOver() {
        return Usage.ofThisProcess().since(before);
    }

    @Override
    public void close() {
        // The threads of each run have ended with it.
    }
}
