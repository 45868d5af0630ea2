package io.deepep.bench.normal;

import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Stopwatch;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;

/** Measures operations of normal mode and holds them against the yardstick of their backend. */
abstract class NormalMeter implements AutoCloseable {
    final Session session;
    final OperationRecord.Context context;
    final NormalBytes bytes;
    private final Stopwatch stopwatch;

    NormalMeter(NormalSetup setup, Stopwatch stopwatch) {
        Job job = setup.session().job();
        this.session = setup.session();
        this.context = new OperationRecord.Context(job, Build.current());
        this.bytes = new NormalBytes(job, setup.workload());
        this.stopwatch = stopwatch;
    }

    /** The meter of the setup's backend, after its yardstick was measured. */
    static NormalMeter open(Console console, NormalSetup setup) {
        if (!setup.session().job().placement().isCuda()) {
            return new HostNormalMeter(setup);
        }
        CudaNormalMeter meter = CudaNormalMeter.open(setup);
        meter.ceilings().forEach(ceiling -> BenchReport.print(console, ceiling));
        return meter;
    }

    /**
     * Measures an operation with each of the job's numbers of multiprocessors, and verifies what
     * the last of each gave.
     */
    final List<OperationRecord> measure(
            IntFunction<NormalOperation> bySms, int warmups, int repeats) {
        List<OperationRecord> records = new ArrayList<>();
        for (int sms : session.job().measuredSms()) {
            NormalOperation operation = bySms.apply(sms);
            Timing timing = stopwatch.measure(operation, warmups, repeats);
            session.team().run(operation::verify);
            OperationRecord.Subject subject =
                    new OperationRecord.Subject(
                            operation.name(),
                            operation.dtype().name().toLowerCase(Locale.ROOT),
                            operation.sms());
            records.add(record(operation, subject, timing, bytes.total(operation.dtype())));
            session.dropUnusedResults();
        }
        return records;
    }

    abstract OperationRecord record(
            NormalOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            OperationBytes moved);

    @Override
    public void close() {
        stopwatch.close();
    }
}
