package io.deepep.bench.lowlatency;

import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Stopwatch;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Session;

/**
 * Measures operations of low-latency mode and holds them against the yardstick of their backend.
 */
abstract class LowLatencyMeter implements AutoCloseable {
    final Session session;
    final Build build = Build.current();
    private final Stopwatch stopwatch;

    LowLatencyMeter(Session session, Stopwatch stopwatch) {
        this.session = session;
        this.stopwatch = stopwatch;
    }

    /** The meter of the session's backend, after its yardstick was measured. */
    static LowLatencyMeter open(Console console, LowLatencySetup setup) {
        if (!setup.session().job().placement().isCuda()) {
            return new HostLowLatencyMeter(setup.session());
        }
        CudaLowLatencyMeter meter = CudaLowLatencyMeter.open(setup);
        meter.ceilings().forEach(ceiling -> BenchReport.print(console, ceiling));
        return meter;
    }

    /** Measures an operation of {@code setup}, and verifies what the last call gave. */
    final OperationRecord measure(
            LowLatencySetup setup, LowLatencyOperation operation, int warmups, int repeats) {
        Timing timing = stopwatch.measure(operation, warmups, repeats);
        session.team().run(operation::verify);
        OperationRecord.Subject subject =
                new OperationRecord.Subject(operation.name(), operation.dtype(), operation.sms());
        LowLatencyBytes bytes = new LowLatencyBytes(setup.job());
        OperationRecord.Context context = new OperationRecord.Context(setup.job(), build);
        OperationRecord record = record(context, operation, subject, timing, bytes);
        session.dropUnusedResults();
        return record;
    }

    abstract OperationRecord record(
            OperationRecord.Context context,
            LowLatencyOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            LowLatencyBytes bytes);

    @Override
    public void close() {
        stopwatch.close();
    }
}
