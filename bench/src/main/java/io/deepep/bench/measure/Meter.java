package io.deepep.bench.measure;

import io.deepep.bench.run.Job;
import io.deepep.bench.run.Session;

/** Measures operations and holds them against the yardstick of their backend. */
public class Meter implements AutoCloseable {
    private final Session session;
    private final Stopwatch stopwatch;
    private final Double memoryCopy;
    private final Build build = Build.current();

    /** Of the latest record; 0 before the first. */
    private int tokens;

    /**
     * A meter of the session's ranks that closes {@code stopwatch}.
     *
     * @param memoryCopy bytes per second, the yardstick of the host backend; null on GPUs
     */
    protected Meter(Session session, Stopwatch stopwatch, Double memoryCopy) {
        this.session = session;
        this.stopwatch = stopwatch;
        this.memoryCopy = memoryCopy;
    }

    /** On the host the yardstick is the bandwidth of this machine's memory. */
    public static Meter onHost(Session session) {
        return new Meter(session, Stopwatch.ofHost(session.team()), MemoryCopy.bytesPerSecond());
    }

    /**
     * Measures {@code call}, and verifies what its last run gave.
     *
     * @param job what is done; the session's own, except for the number of tokens
     */
    public final OperationRecord measure(Job job, MeasuredCall call, int warmups, int repeats) {
        boolean sameRouting = job.routing().maxTokens() == tokens;
        tokens = job.routing().maxTokens();
        Timing timing = stopwatch.measure(call, warmups, repeats);
        session.run(call::verify);
        OperationRecord record =
                OperationRecord.of(
                        job,
                        session.network(),
                        build,
                        call.subject(),
                        timing.work(),
                        call.total(),
                        memoryCopy,
                        gpu(call, timing),
                        sameRouting ? null : RoutingCounts.of(job.routing()));
        session.dropUnusedResults();
        return record;
    }

    /** What was measured, beside the yardstick of GPUs; null on the host. */
    protected GpuFigures gpu(MeasuredCall call, Timing timing) {
        return null;
    }

    @Override
    public final void close() {
        stopwatch.close();
    }
}
