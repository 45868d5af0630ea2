package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.cuda.CudaStopwatch;
import io.deepep.bench.cuda.LinkCeiling;
import io.deepep.bench.measure.Ceiling;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Session;
import java.util.Collection;
import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;

/** Against what a bare copy of the same rows between the same ranks reaches in the same run. */
final class CudaLowLatencyMeter extends LowLatencyMeter {
    /** For the empty kernel. */
    private static final int WARMUPS = 5;

    private static final int REPEATS = 40;

    private final CudaStopwatch stopwatch;

    /** By the bytes of their rows. */
    private final Map<Long, Ceiling> ceilings;

    /** By multiprocessors. */
    private final Map<Integer, Double> emptyKernelMicros;

    private CudaLowLatencyMeter(
            Session session,
            CudaStopwatch stopwatch,
            Map<Long, Ceiling> ceilings,
            Map<Integer, Double> emptyKernelMicros) {
        super(session, stopwatch);
        this.stopwatch = stopwatch;
        this.ceilings = ceilings;
        this.emptyKernelMicros = emptyKernelMicros;
    }

    static CudaLowLatencyMeter open(LowLatencySetup setup) {
        Session session = setup.session();
        LowLatencyBytes bytes = new LowLatencyBytes(setup.job());
        CudaStopwatch stopwatch = CudaStopwatch.open(session);
        Map<Long, Ceiling> ceilings = new TreeMap<>();
        for (long row :
                new long[] {
                    bytes.dispatchWireRowBytes(LowLatencyFormat.FP8),
                    bytes.combineRowBytes(CombineRows.BF16)
                }) {
            ceilings.put(
                    row,
                    LinkCeiling.measure(
                            stopwatch,
                            session,
                            Math.toIntExact(row),
                            LowLatencyBench.measuredSms(setup.job())));
        }
        Map<Integer, Double> empty = new TreeMap<>();
        for (int sms : LowLatencyBench.measuredSms(setup.job())) {
            Timing timing = stopwatch.measure(stopwatch.emptyKernel(sms), WARMUPS, REPEATS);
            empty.put(sms, timing.work().percentileMicros(50));
        }
        return new CudaLowLatencyMeter(session, stopwatch, ceilings, empty);
    }

    /** By length of row. */
    Collection<Ceiling> ceilings() {
        return ceilings.values();
    }

    @Override
    OperationRecord record(
            OperationRecord.Context context,
            LowLatencyOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            LowLatencyBytes bytes) {
        Ceiling ceiling = ceiling(operation.wireRowBytes(bytes));
        return context.onGpus(
                subject,
                timing.work(),
                operation.total(bytes),
                stopwatch.figures(
                        timing,
                        ceiling,
                        ceiling.at(operation.sms(), true),
                        operation.busiestLinkBytes(bytes),
                        emptyKernelMicros.get(operation.sms())));
    }

    /** Of the rows whose length is nearest. */
    private Ceiling ceiling(long rowBytes) {
        return ceilings.values().stream()
                .min(Comparator.comparingLong(each -> Math.abs(each.rowBytes() - rowBytes)))
                .orElseThrow();
    }
}
