package io.deepep.bench.normal;

import io.deepep.NormalLimits;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.Session;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

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
    static NormalSetup open(Job job, Map<String, Routing> routings) {
        List<Routing> all = new ArrayList<>(routings.values());
        all.add(job.routing());
        int maxTokens = all.stream().mapToInt(Routing::maxTokens).max().orElseThrow();
        int rows =
                Math.max(1, all.stream().mapToInt(NormalSetup::maxRecvTokens).max().orElseThrow());
        NormalLimits limits = limits(job, maxTokens, rows);
        MemoryNeed.require(job.numRanks(), perRank(job, limits));
        Session session = Session.open(job, builder -> builder.normal(limits));
        TokenPool pool = new TokenPool(job, session.team(), maxTokens);
        Map<String, NormalWorkload> others = new LinkedHashMap<>();
        routings.forEach((note, routing) -> others.put(note, new NormalWorkload(routing, pool)));
        return new NormalSetup(
                session, pool, new NormalWorkload(job.routing(), pool), others, rows);
    }

    private static NormalLimits limits(Job job, int maxTokens, int rows) {
        try {
            return new NormalLimits(
                    maxTokens,
                    job.hidden(),
                    job.routing().numTopk(),
                    job.routing().numExperts(),
                    rows);
        } catch (IllegalArgumentException refused) {
            throw UsageException.of(refused);
        }
    }

    private static long perRank(Job job, NormalLimits limits) {
        return job.dispatchConfig().nvlBufferSizeHint(limits, job.topology())
                + job.dispatchConfig().rdmaBufferSizeHint(limits, job.topology());
    }

    /** The most rows that any rank receives. */
    private static int maxRecvTokens(Routing routing) {
        int[] rows = new int[routing.numRanks()];
        for (int src = 0; src < routing.numRanks(); src++) {
            for (int token = 0; token < routing.numTokens(src); token++) {
                for (int rank = 0; rank < rows.length; rank++) {
                    rows[rank] += routing.goesTo(src, token, rank) ? 1 : 0;
                }
            }
        }
        int most = 0;
        for (int count : rows) {
            most = Math.max(most, count);
        }
        return most;
    }

    @Override
    public void close() {
        session.close();
    }
}
