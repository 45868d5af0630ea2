package io.deepep.bench.normal;

import io.deepep.MachineProfile;
import io.deepep.bench.measure.OperationOptions;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.Session;
import io.deepep.bench.run.UsageException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The file of a {@link MachineProfile}, made of what was measured.
 *
 * @param file null if none was asked for
 */
record ProfileOutput(Path file) {
    private static final String OPTION = "--profile";
    private static final Set<String> DISPATCHES = Set.of("dispatch", "dispatch-cached");

    private static final Set<String> COMBINES =
            Set.of("combine-staged", "combine-plain", "combine-zero-copy");

    /** What fewer multiprocessors may cost: about as much as runs differ. */
    private static final double TOLERANCE = 0.01;

    /** Refuses what measures no links, or nothing to choose from, before ranks start. */
    void require(Job job, OperationOptions options) {
        if (file == null) {
            return;
        }
        if (!options.isAll()) {
            throw new UsageException(OPTION + " needs all operations; leave --operations out");
        }
        if (!job.placement().isCuda()) {
            throw new UsageException(
                    "%s=%s is for GPUs, but this is the %s"
                            .formatted(OPTION, file, job.placement().describe()));
        }
        if (job.numRanks() < 2) {
            throw new UsageException(OPTION + " measures links between ranks, but --ranks is 1");
        }
        if (job.measuredSms().size() < 2) {
            throw new UsageException(
                    ("%s compares numbers of multiprocessors, but --sms=%s is a single number; give"
                                    + " several, or leave --sms out")
                            .formatted(OPTION, job.measuredSms().getFirst()));
        }
    }

    /** Refuses ranks that share GPUs, when it is known how many each host has. */
    void require(Session session) {
        if (file == null) {
            return;
        }
        int first = session.team().localRanks().getFirst();
        requireOwnGpus(session.job().placement(), session.communicator(first).localSize());
    }

    void requireOwnGpus(Placement placement, int numLocal) {
        if (placement.ranksPerGpu(numLocal) > 1) {
            throw new UsageException(
                    "%s=%s needs a GPU for each rank: rows between ranks of one GPU cross no link, and %s ranks share %s GPUs here"
                            .formatted(OPTION, file, numLocal, placement.numGpus()));
        }
    }

    /** Writes it, if it was asked for and this process writes results. */
    void write(Console console, Session session, List<OperationRecord> records) {
        if (file == null || !session.writesResults()) {
            return;
        }
        MachineProfile profile = of(records);
        OutputFile.write(OPTION, file, text(profile, records));
        console.line(
                "profile %s: dispatchSms=%s, combineSms=%s",
                file, profile.dispatchSms(), profile.combineSms());
    }

    static MachineProfile of(List<OperationRecord> records) {
        OperationRecord any = records.getFirst();
        return new MachineProfile(
                any.gpu().gpu(),
                any.nodes(),
                numSms(records, DISPATCHES),
                numSms(records, COMBINES));
    }

    static String text(MachineProfile profile, List<OperationRecord> records) {
        OperationRecord any = records.getFirst();
        return """
               # How many multiprocessors normal mode needs here, for Buffer.Builder.profile or -Ddeepep.profile.
               # Written by deepep bench normal %s, commit %s, at %s, %s
               # with %s ranks, up to %s tokens each, hidden %s, top-%s of %s experts.
               """
                        .formatted(
                                any.version(),
                                any.commit(),
                                any.time(),
                                any.gpu().driver(),
                                any.ranks(),
                                any.tokens(),
                                any.hidden(),
                                any.topk(),
                                any.experts())
                + profile.toText();
    }

    /**
     * One number serves all forms of an operation (each name and dtype), some of which need more
     * than others. With each number, the form that loses most against its own best counts; the
     * smallest number is chosen whose loss is within {@link #TOLERANCE} of the least.
     */
    private static int numSms(List<OperationRecord> records, Set<String> ops) {
        List<OperationRecord> counted = records.stream().filter(each -> counts(each, ops)).toList();
        Map<List<String>, Double> best = new HashMap<>();
        counted.forEach(each -> best.merge(form(each), each.p50Micros(), Math::min));
        TreeMap<Integer, Double> worstLoss = new TreeMap<>();
        for (OperationRecord each : counted) {
            double loss = each.p50Micros() / best.get(form(each)) - 1;
            worstLoss.merge(each.sms(), loss, Math::max);
        }
        double least = worstLoss.values().stream().min(Double::compare).orElseThrow();
        return worstLoss.entrySet().stream()
                .filter(each -> each.getValue() <= least + TOLERANCE)
                .findFirst()
                .orElseThrow()
                .getKey();
    }

    /** Not combines in FP8, whose casts and sums take as many multiprocessors as there are. */
    private static boolean counts(OperationRecord each, Set<String> ops) {
        boolean fp8 = COMBINES.contains(each.op()) && !each.dtype().equals("bf16");
        return ops.contains(each.op()) && !fp8;
    }

    private static List<String> form(OperationRecord each) {
        return List.of(each.op(), each.dtype());
    }
}
