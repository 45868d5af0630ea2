package io.deepep.bench.chaos;

import io.deepep.bench.launch.Ports;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.function.IntFunction;

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
    private final IntFunction<ChaosProcess> starter;
    private final List<ChaosProcess> processes = new ArrayList<>();

    /**
     * No processes yet.
     *
     * @param starter starts one for a seat
     */
    World(RankKind model, RankRun run, int numRanks, IntFunction<ChaosProcess> starter) {
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
        String secret = newSecret();
        int port = Ports.free();
        int numRanks = processes.size() * ranksEach;
        for (int i = 0; i < processes.size(); i++) {
            int rank = ranksEach > 1 ? RankProgram.Order.ALL : i;
            ChaosProcess process = processes.get(i);
            process.tell(
                    new RankProgram.Order(
                            trial, rank, process.seat(), numRanks, port, 0, false, secret),
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

    private static String newSecret() {
        byte[] random = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(random);
        return HexFormat.of().formatHex(random);
    }

    /**
     * Has all ranks make a run in which the victim is killed, and a new process takes its place in
     * the buffers of the others.
     *
     * @return an outcome for each rank that took part, in order, and last that of the new one
     */
    List<Outcome> runReplacing(Trial trial) {
        int victim = trial.victim();
        ChaosProcess spare = starter.apply(processes.get(victim).seat());
        processes.add(spare); // closed with the others, whatever happens
        spare.awaitReady();
        int port = Ports.free();
        int nextPort = Ports.free();
        String secret = newSecret();
        for (int rank = 0; rank < numProcesses; rank++) {
            tell(processes.get(rank), trial, rank, port, nextPort, secret);
        }
        long deadline = System.nanoTime() + run.patience().plus(ANSWER).toNanos();
        List<Outcome> outcomes =
                new ArrayList<>(Collections.nCopies(numProcesses + 1, Outcome.DEAD));
        outcomes.set(victim, processes.get(victim).await(deadline, 1).getFirst());
        tell(spare, trial, victim, 0, nextPort, secret);
        for (int rank = 0; rank <= numProcesses; rank++) {
            if (rank != victim) {
                outcomes.set(rank, processes.get(rank).await(deadline, 1).getFirst());
            }
        }
        processes.removeLast();
        processes.set(victim, spare).close();
        processes.removeIf(ChaosProcess::isGone);
        return outcomes;
    }

    /** Without a port, the process takes the place of {@code rank}. */
    private void tell(
            ChaosProcess process, Trial trial, int rank, int port, int nextPort, String secret) {
        boolean joins = port == 0;
        process.tell(
                new RankProgram.Order(
                        trial, rank, process.seat(), numProcesses, port, nextPort, joins, secret),
                run.timeout());
    }

    /**
     * Brings a process for each that is gone.
     *
     * @return how many came
     */
    int replace() {
        int missing = numProcesses - processes.size();
        for (int seat = 0; seat < numProcesses; seat++) {
            if (isFree(seat)) {
                processes.add(starter.apply(seat));
            }
        }
        processes.forEach(ChaosProcess::awaitReady);
        return missing;
    }

    private boolean isFree(int seat) {
        return processes.stream().noneMatch(process -> process.seat() == seat);
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
