package io.deepep.bench.normal;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.NormalLimits;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.Session;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * Ranks with buffers for normal mode, and the workloads of a job.
 *
 * @param session the ranks
 * @param pool tokens
 * @param workload of the job's own routing
 * @param others workloads of special routings by what is special
 * @param worstRows rows that a rank has room for
 */
record NormalSetup(
        Session session,
        TokenPool pool,
        NormalWorkload workload,
        Map<String, NormalWorkload> others,
        int worstRows)
        implements AutoCloseable {
    /**
     * Opens buffers that are just large enough.
     *
     * @param routings special routings to prepare for as well
     */
    static NormalSetup open(Job job, Map<String, Routing> routings, IntFunction<RankSource> ranks) {
        List<Routing> all = new ArrayList<>(routings.values());
        all.add(job.routing());
        int maxTokens = all.stream().mapToInt(Routing::maxTokens).max().orElseThrow();
        int rows =
                all.stream()
                        .flatMapToInt(routing -> Arrays.stream(routing.receivedTokens()))
                        .reduce(1, Math::max);
        NormalLimits limits =
                UsageException.unlessRefused(
                        () ->
                                new NormalLimits(
                                        maxTokens,
                                        job.hidden(),
                                        job.routing().numTopk(),
                                        job.routing().numExperts(),
                                        rows));
        MemoryNeed.requireBuffers(job, bufferBytes(job, limits), tensorBytes(job, rows));
        Session session =
                Session.open(
                        job,
                        ranks.apply(job.numRanks()),
                        builder ->
                                builder.normal(limits)
                                        .dispatchConfig(
                                                job.dispatchConfig().withNumSms(job.mostSms()))
                                        .combineConfig(
                                                job.combineConfig().withNumSms(job.mostSms())));
        TokenPool pool = new TokenPool(session, maxTokens);
        Map<String, NormalWorkload> others = new LinkedHashMap<>();
        routings.forEach(
                (note, routing) -> others.put(note, new NormalWorkload(session, routing, pool)));
        return new NormalSetup(
                session, pool, new NormalWorkload(session, job.routing(), pool), others, rows);
    }

    /** Roughly what a rank's tokens, expert outputs and copied results take. */
    private static long tensorBytes(Job job, long rows) {
        long row = (long) DType.BF16.sizeBytes() * job.hidden();
        return (4L * job.routing().maxTokens() + 4 * rows) * row;
    }

    private static long bufferBytes(Job job, NormalLimits limits) {
        Config widest = job.dispatchConfig().withNumSms(job.mostSms());
        return widest.nvlBufferSizeHint(limits, job.topology())
                + widest.rdmaBufferSizeHint(limits, job.topology());
    }

    @Override
    public void close() {
        try {
            session.close();
        } finally {
            pool.close();
        }
    }
}
