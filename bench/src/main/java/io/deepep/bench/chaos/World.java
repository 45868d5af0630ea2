package io.deepep.bench.chaos;

import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import io.deepep.planner.Mode;
import io.deepep.spi.LoopbackPorts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.function.IntFunction;

/**
 * The processes of all runs of one model, which stay from run to run: one for each rank, or one
 * whose threads all ranks are. Those that are killed are missing until they are replaced.
 */
final class World implements AutoCloseable {
    /** A process itself waits for the threads in it. */
    private static final Duration ANSWER = Duration.ofSeconds(20);

    private final RankKind model;
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
        this.model = model;
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
        String secret = UUID.randomUUID().toString();
        int port = LoopbackPorts.free();
        Duration ifStopped =
                trial.action() == Action.FREEZE
                        ? run.timeout().multipliedBy(2)
                        : run.timeout().dividedBy(4);
        int numRanks = processes.size() * ranksEach;
        for (int i = 0; i < processes.size(); i++) {
            int rank = ranksEach > 1 ? RankProgram.Order.ALL : i;
            processes.get(i).tell(trial, rank, numRanks, port, 0, secret, ifStopped);
        }
        long deadline = deadline();
        List<Outcome> outcomes =
                processes.stream()
                        .flatMap(process -> process.await(deadline, ranksEach).stream())
                        .toList();
        processes.removeIf(ChaosProcess::isGone);
        return outcomes;
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
        warmUp(List.of(spare));
        int port = LoopbackPorts.free();
        int nextPort = LoopbackPorts.free();
        String secret = UUID.randomUUID().toString();
        for (int rank = 0; rank < numProcesses; rank++) {
            processes
                    .get(rank)
                    .tell(trial, rank, numProcesses, port, nextPort, secret, run.timeout());
        }
        long deadline = deadline();
        List<Outcome> outcomes =
                new ArrayList<>(Collections.nCopies(numProcesses + 1, Outcome.DEAD));
        outcomes.set(victim, processes.get(victim).await(deadline, 1).getFirst());
        spare.tell(trial, victim, numProcesses, 0, nextPort, secret, run.timeout());
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

    /**
     * Brings a process for each that is gone.
     *
     * @return how many came
     */
    int replace() {
        List<ChaosProcess> missing = new ArrayList<>();
        for (int seat = 0; seat < numProcesses; seat++) {
            if (isFree(seat)) {
                ChaosProcess process = starter.apply(seat);
                processes.add(process); // closed with the others, whatever happens
                missing.add(process);
            }
        }
        warmUp(missing);
        return missing.size();
    }

    /**
     * Has new processes make a run of each mode, each in a group of its own: others do not wait for
     * a process that has to find its GPU, and load its kernels.
     *
     * @throws UsageException if one of them cannot
     */
    private void warmUp(List<ChaosProcess> fresh) {
        fresh.forEach(ChaosProcess::awaitReady);
        for (Mode mode : Mode.values()) {
            Trial trial = Trial.quiet(mode.ordinal(), mode, model);
            int rank = ranksEach > 1 ? RankProgram.Order.ALL : 0;
            for (ChaosProcess process : fresh) {
                int port = LoopbackPorts.free();
                process.tell(trial, rank, 1, port, 0, UUID.randomUUID().toString(), Duration.ZERO);
            }
            long deadline = deadline();
            for (ChaosProcess process : fresh) {
                Outcome outcome = process.await(deadline, 1).getFirst();
                if (outcome.kind() != Outcome.Kind.PASSED) {
                    throw new UsageException(
                            "chaos: before its first trial, in %s mode, a process by itself %s"
                                    .formatted(Names.of(mode), outcome));
                }
            }
        }
        fresh.forEach(ChaosProcess::forgetUsage);
    }

    private long deadline() {
        return System.nanoTime() + run.patience().plus(ANSWER).toNanos();
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
