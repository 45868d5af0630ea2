package io.deepep.bench.chaos;

import io.deepep.bench.launch.Ports;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Supplier;

/** Ranks that are processes. Those that are killed are missing until they are replaced. */
final class ProcessWorld implements World {
    private static final int SECRET_BYTES = 32;

    private final RankRun run;
    private final int numRanks;
    private final Supplier<ChaosProcess> starter;
    private final List<ChaosProcess> processes = new ArrayList<>();

    /**
     * No processes yet.
     *
     * @param starter starts one
     */
    ProcessWorld(RankRun run, int numRanks, Supplier<ChaosProcess> starter) {
        this.run = run;
        this.numRanks = numRanks;
        this.starter = starter;
    }

    @Override
    public List<Outcome> run(Trial trial) {
        byte[] random = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(random);
        String secret = HexFormat.of().formatHex(random);
        int port = Ports.free();
        for (int rank = 0; rank < processes.size(); rank++) {
            processes
                    .get(rank)
                    .tell(
                            new RankProgram.Order(trial, rank, processes.size(), port, secret),
                            trial.action() == Action.FREEZE
                                    ? run.timeout().multipliedBy(2)
                                    : run.timeout().dividedBy(4));
        }
        long deadline = System.nanoTime() + run.patience().toNanos();
        List<Outcome> outcomes =
                processes.stream().map(process -> process.await(deadline)).toList();
        processes.removeIf(ChaosProcess::isGone);
        return outcomes;
    }

    @Override
    public int size() {
        return processes.size();
    }

    @Override
    public int replace() {
        int missing = numRanks - processes.size();
        for (int i = 0; i < missing; i++) {
            processes.add(starter.get());
        }
        return missing;
    }

    @Override
    public Usage leftOver() {
        return processes.stream()
                .map(ChaosProcess::leftOver)
                .reduce(Usage::max)
                .orElse(new Usage(0, 0, 0));
    }

    @Override
    public void close() {
        processes.forEach(ChaosProcess::close);
    }
}
