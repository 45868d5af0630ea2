package io.deepep.bench.chaos;

import io.deepep.bench.launch.Ports;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Supplier;

/**
 * The processes of all runs of one model, which stay from run to run: one for each rank, or one
 * whose threads all ranks are. Those that are killed are missing until they are replaced.
 */
final class World implements AutoCloseable {
    private static final int SECRET_BYTES = 32;

    /** A process itself waits for the threads in it. */
    private static final Duration ANSWER = Duration.ofSeconds(20);

    private final RankRun run;
    private final int numProcesses;
    private final int ranksEach;
    private final Supplier<ChaosProcess> starter;
    private final List<ChaosProcess> processes = new ArrayList<>();

    /**
     * No processes yet.
     *
     * @param starter starts one
     */
    World(RankKind model, RankRun run, int numRanks, Supplier<ChaosProcess> starter) {
        this.run = run;
        this.ranksEach = model == RankKind.THREADS ? numRanks : 1;
        this.numProcesses = numRanks / ranksEach;
        this.starter = starter;
    }

    /**
     * Has all ranks make a run in a new group.
     *
     * @return an outcome for each rank that took part, in order
     */
    List<Outcome> run(Trial trial) {
        byte[] random = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(random);
        String secret = HexFormat.of().formatHex(random);
        int port = Ports.free();
        int numRanks = processes.size() * ranksEach;
        for (int i = 0; i < processes.size(); i++) {
            int rank = ranksEach > 1 ? RankProgram.Order.ALL : i;
            processes
                    .get(i)
                    .tell(
                            new RankProgram.Order(trial, rank, numRanks, port, secret),
                            trial.action() == Action.FREEZE
                                    ? run.timeout().multipliedBy(2)
                                    : run.timeout().dividedBy(4));
        }
        long deadline = System.nanoTime() + run.patience().plus(ANSWER).toNanos();
        List<Outcome> outcomes =
                processes.stream()
                        .flatMap(process -> process.await(deadline, ranksEach).stream())
                        .toList();
        processes.removeIf(ChaosProcess::isGone);
        return outcomes;
    }

    /**
     * Brings a process for each that is gone.
     *
     * @return how many came
     */
    int replace() {
        int missing = numProcesses - processes.size();
        for (int i = 0; i < missing; i++) {
            processes.add(starter.get());
        }
        processes.forEach(ChaosProcess::awaitReady);
        return missing;
    }

    /** What the processes hold more now than after their first runs, the most of any. */
    Usage leftOver() {
        return processes.stream()
                .map(ChaosProcess::leftOver)
                .reduce(Usage::max)
                .orElse(Usage.NOTHING);
    }

    @Override
    public void close() {
        processes.forEach(ChaosProcess::close);
    }
}
