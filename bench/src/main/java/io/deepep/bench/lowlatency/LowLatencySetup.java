package io.deepep.bench.lowlatency;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.LowLatencyLimits;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.Session;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Routing;
import java.util.Set;
import java.util.function.IntFunction;

/**
 * Ranks with buffers for low-latency mode.
 *
 * @param session the ranks
 * @param job what is done; the session's own, except for the number of tokens
 * @param limits of the buffers
 * @param workload of the job's own routing
 */
record LowLatencySetup(
        Session session, Job job, LowLatencyLimits limits, LowLatencyWorkload workload)
        implements AutoCloseable {
    static LowLatencySetup open(Job job, IntFunction<RankSource> ranks) {
        LowLatencyLimits limits =
                UsageException.unlessRefused(
                        () ->
                                new LowLatencyLimits(
                                        job.routing().maxTokens(),
                                        job.hidden(),
                                        job.routing().numTopk(),
                                        job.routing().numExperts()));
        long outputs = (long) job.numRanks() * limits.maxTokens();
        MemoryNeed.requireBuffers(
                job,
                Buffer.lowLatencyRdmaSizeHint(limits, job.topology()),
                outputs * job.hidden() * DType.BF16.sizeBytes());
        Session session =
                Session.open(
                        job, ranks.apply(job.numRanks()), builder -> builder.lowLatency(limits));
        return new LowLatencySetup(
                session,
                job,
                limits,
                new LowLatencyWorkload(session, job.routing(), limits, Set.of()));
    }

    /** Another workload over the same buffers, with fewer tokens; not to be closed by itself. */
    LowLatencySetup withNumTokens(int number) {
        if (number == job.routing().maxTokens()) {
            return this;
        }
        Job fewer = job.withNumTokens(number);
        return new LowLatencySetup(session, fewer, limits, workload(fewer.routing(), Set.of()));
    }

    /** Of another routing over the same buffers, in which ranks may be absent. */
    LowLatencyWorkload workload(Routing routing, Set<Integer> absent) {
        return new LowLatencyWorkload(session, routing, limits, absent);
    }

    @Override
    public void close() {
        session.close();
    }
}
