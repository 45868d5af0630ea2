package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.cuda.CudaStopwatch;
import io.deepep.bench.cuda.LinkCeiling;
import io.deepep.bench.measure.Ceiling;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Job;
import java.util.Collection;
import java.util.EnumMap;
import java.util.Map;
import java.util.TreeSet;

/** Against what a bare copy of the same rows between the same ranks reaches in the same run. */
final class CudaNormalMeter extends NormalMeter {
    private final CudaStopwatch stopwatch;
    private final Map<DType, Ceiling> ceilings;

    private CudaNormalMeter(
            NormalSetup setup, CudaStopwatch stopwatch, Map<DType, Ceiling> ceilings) {
        super(setup, stopwatch);
        this.stopwatch = stopwatch;
        this.ceilings = ceilings;
    }

    static CudaNormalMeter open(NormalSetup setup) {
        Job job = setup.session().job();
        NormalBytes bytes = new NormalBytes(job, setup.workload());
        TreeSet<Integer> sms = new TreeSet<>(job.measuredSms());
        sms.add(job.placement().smsPerRank(job.numRanks()));
        CudaStopwatch stopwatch = CudaStopwatch.open(setup.session());
        Map<DType, Ceiling> ceilings = new EnumMap<>(DType.class);
        for (DType dtype : DType.values()) {
            if (dtype == DType.BF16 || (dtype == DType.FP8_E4M3 && job.allowsFp8())) {
                int row = Math.toIntExact(bytes.wireRowBytes(dtype));
                ceilings.put(dtype, LinkCeiling.measure(stopwatch, setup.session(), row, sms));
            }
        }
        return new CudaNormalMeter(setup, stopwatch, ceilings);
    }

    /** One for each dtype of rows. */
    Collection<Ceiling> ceilings() {
        return ceilings.values();
    }

    @Override
    OperationRecord record(
            NormalOperation operation,
            OperationRecord.Subject subject,
            Timing timing,
            OperationBytes moved) {
        Ceiling ceiling = ceilings.get(operation.dtype());
        return context.onGpus(
                subject,
                timing.work(),
                moved,
                stopwatch.figures(
                        timing,
                        ceiling,
                        ceiling.at(operation.sms(), operation.pushes()),
                        bytes.busiestLinkBytes(operation.dtype()),
                        null));
    }
}
