package io.deepep.bench.normal;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.Meter;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.text.Decimals;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;

/**
 * The last lines of a test: bandwidth and time of the main operations, per rank as DeepEP reports
 * them. Where several numbers of multiprocessors are measured, a line for each and then the best.
 */
record NormalSpeed(Console console, NormalSetup setup, Meter meter) {
    private static final int WARMUPS = 2;
    private static final int HOST_REPEATS = 5;
    private static final int CUDA_REPEATS = 20;
    private static final double GIGA = 1e9;

    static void report(Console console, NormalSetup setup) {
        NormalOperations operations = new NormalOperations(setup);
        try (Meter meter = NormalBench.meter(console, setup)) {
            NormalSpeed speed = new NormalSpeed(console, setup, meter);
            if (setup.session().job().allowsFp8()) {
                speed.report("dispatch (FP8) ", sms -> operations.dispatch(DType.FP8_E4M3, sms));
            }
            speed.report("dispatch (BF16)", sms -> operations.dispatch(DType.BF16, sms));
            speed.report(
                    "combine (BF16) ",
                    sms -> operations.combine(CombineSource.BUFFER, CombineFormat.BF16, sms));
        }
    }

    private void report(String name, IntFunction<MeasuredCall> operation) {
        Job job = setup.session().job();
        int repeats = job.placement().isCuda() ? CUDA_REPEATS : HOST_REPEATS;
        List<OperationRecord> records =
                job.measuredSms().stream()
                        .map(sms -> meter.measure(job, operation.apply(sms), WARMUPS, repeats))
                        .toList();
        if (records.size() > 1) {
            records.forEach(
                    each -> console.line("tuning %s: %2d SMs, %s", name, each.sms(), text(each)));
        }
        OperationRecord best =
                records.stream()
                        .min(Comparator.comparingDouble(OperationRecord::p50Micros))
                        .orElseThrow();
        String which = best.gpu() == null ? "" : "best with " + best.sms() + " SMs, ";
        console.line("%s: %s%s, per rank, median of %d", name, which, text(best), best.repeats());
    }

    private static String text(OperationRecord each) {
        StringBuilder text = new StringBuilder();
        if (each.nodes() > 1) {
            text.append(
                    Decimals.of(
                            "%.2f GB/s (RDMA), ",
                            each.bytesPerSecond(each.rdmaBytes()) / GIGA / each.ranks()));
        }
        if (each.gpu() != null) {
            text.append(Decimals.of("%.1f GB/s (links), ", each.gpu().linkBytesPerSecond() / GIGA));
        }
        if (each.gpu() != null && each.gpu().ceilingShare() != null) {
            text.append(
                    Decimals.of(
                            "%.0f %% of the best bare copy, ", 100 * each.gpu().ceilingShare()));
        }
        return text.append(
                        Decimals.of(
                                "%.2f GB/s (received rows), ",
                                each.bytesPerSecond(each.logicalBytes()) / GIGA / each.ranks()))
                .append(Decimals.of("%.0f us", each.p50Micros()))
                .toString();
    }
}
