package io.deepep.bench.measure;

import io.deepep.bench.run.Job;
import io.deepep.bench.run.Session;

/** Measures operations and holds them against the yardstick of their backend. */
public abstract class Meter implements AutoCloseable {
    private final Session session;
    private final Stopwatch stopwatch;
    private final Build build = Build.current();

    /** A meter of the session's ranks that closes {@code stopwatch}. */
    protected Meter(Session session, Stopwatch stopwatch) {
        this.session = session;
        this.stopwatch = stopwatch;
    }

    /** On the host the yardstick is the bandwidth of this machine's memory. */
    public static Meter onHost(Session session) {
        double memoryCopy = MemoryCopy.bytesPerSecond();
        return new Meter(session, Stopwatch.ofHost(session.team())) {
            @Override
            protected OperationRecord record(
                    OperationRecord.Context context, MeasuredCall call, Timing timing) {
                return context.onHost(call.subject(), timing.work(), call.total(), memoryCopy);
            }
        };
    }

    /**
     * Measures {@code call}, and verifies what its last run gave.
     *
     * @param job what is done; the session's own, except for the number of tokens
     */
    public final OperationRecord measure(Job job, MeasuredCall call, int warmups, int repeats) {
        Timing timing = stopwatch.measure(call, warmups, repeats);
        session.run(call::verify);
        OperationRecord record = record(new OperationRecord.Context(job, build), call, timing);
        session.dropUnusedResults();
        return record;
    }

    /** What was measured, beside the yardstick. */
    protected abstract OperationRecord record(
            OperationRecord.Context context, MeasuredCall call, Timing timing);

    @Override
    public final void close() {
        stopwatch.close();
    }
}
