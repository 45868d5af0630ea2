package io.deepep.bench.measure;

import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Session;

/** Measures operations and holds them against the yardstick of their backend. */
public abstract class Meter implements AutoCloseable {
    private final Session session;
    private final Double memoryCopy;
    private final Build build = Build.current();

    /** Of the latest record; 0 before the first. */
    private int tokens;

    /**
     * A meter of the session's ranks.
     *
     * @param memoryCopy bytes per second, the yardstick of the host backend; null on GPUs
     */
    protected Meter(Session session, Double memoryCopy) {
        this.session = session;
        this.memoryCopy = memoryCopy;
    }

    /**
     * Times whole calls by the clock of the host; the yardstick is the bandwidth of this machine's
     * memory.
     */
    public static Meter onHost(Session session) {
        return new Meter(session, MemoryCopy.bytesPerSecond()) {
            @Override
            protected Timing time(CollectiveCall operation, int warmups, int repeats) {
                Samples calls =
                        Samples.measure(session.team(), warmups, repeats, operation.synchronous());
                return new Timing(calls, calls, calls);
            }

            @Override
            public void close() {
                // The ranks belong to the session.
            }
        };
    }

    /**
     * Measures {@code call}, and verifies what its last run gave.
     *
     * @param job what is done; the session's own, except for the number of tokens
     */
    public final OperationRecord measure(Job job, MeasuredCall call, int warmups, int repeats) {
        boolean sameRouting = job.routing().maxTokens() == tokens;
        tokens = job.routing().maxTokens();
        Timing timing = time(call.operation(), warmups, repeats);
        session.run(call.verification());
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

    /**
     * Times an operation on all ranks.
     *
     * @param warmups calls before those that count
     * @param repeats calls that count
     */
    protected abstract Timing time(CollectiveCall operation, int warmups, int repeats);

    /** What was measured, beside the yardstick of GPUs; null on the host. */
    protected GpuFigures gpu(MeasuredCall call, Timing timing) {
        return null;
    }

    @Override
    public abstract void close();
}
