package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.OperationRecord;
import java.util.List;
import java.util.OptionalDouble;

/** A bar for each operation of a run, in reports and on pages. */
final class OperationCharts {
    private OperationCharts() {}

    /** What such a chart shows. */
    static String title(boolean share) {
        return share ? "Share of the ceiling" : "Time by operation";
    }

    /**
     * Draws.
     *
     * @param share whether of what is possible, instead of times
     */
    static String bars(boolean share, List<OperationRecord> records) {
        boolean gpu = records.stream().anyMatch(each -> each.gpu() != null);
        boolean sameSms = records.stream().mapToInt(OperationRecord::sms).distinct().count() == 1;
        List<String> names =
                records.stream()
                        .map(
                                each ->
                                        OperationNames.of(each, records)
                                                + (gpu && !sameSms
                                                        ? ", " + each.sms() + " SMs"
                                                        : ""))
                        .toList();
        String subject = gpu && sameSms ? ", " + records.getFirst().sms() + " SMs" : "";
        if (share) {
            return Charts.bars(
                    title(true) + subject,
                    gpu ? "% of the best bare copy" : "% of a memory copy",
                    names,
                    records.stream().map(each -> 100 * BenchRun.share(each)).toList(),
                    OptionalDouble.of(100));
        }
        boolean millis = records.stream().anyMatch(each -> each.p50Micros() >= 10_000);
        return Charts.bars(
                title(false) + subject,
                (millis ? "ms" : "µs") + ", median of the slowest rank",
                names,
                records.stream().map(each -> each.p50Micros() / (millis ? 1000 : 1)).toList(),
                OptionalDouble.empty());
    }
}
