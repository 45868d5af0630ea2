package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import java.util.List;
import java.util.Map;

/** How people call the operations of records. */
final class OperationNames {
    private static final Map<String, String> DTYPES =
            Map.of(
                    "bf16", "BF16",
                    "fp8_e4m3", "FP8",
                    "fp8", "FP8",
                    "fp8_power_of_two", "FP8, powers of two",
                    "fp8_ue8m0", "FP8, UE8M0");
    private static final Map<String, String> VARIANTS =
            Map.of(
                    "zero-copy", "in place",
                    "logfmt", "LogFMT",
                    "fp8", "FP8",
                    "pre-reduced-fp8", "pre-reduced, FP8");

    private OperationNames() {}

    /** As below, and for how many tokens where {@code all} are not of the same number. */
    static String of(OperationRecord each, List<OperationRecord> all) {
        boolean same = all.stream().allMatch(other -> other.tokens() == each.tokens());
        return of(each) + (same ? "" : ", tokens: " + each.tokens());
    }

    /** As {@code dispatch FP8, cached} or {@code low-latency combine BF16, in place}. */
    static String of(OperationRecord each) {
        boolean lowLatency = each.op().startsWith("ll-");
        String op = lowLatency ? each.op().substring("ll-".length()) : each.op();
        int dash = op.indexOf('-');
        String variant = dash < 0 ? "" : op.substring(dash + 1);
        return (lowLatency ? "low-latency " : "")
                + (dash < 0 ? op : op.substring(0, dash))
                + " "
                + DTYPES.getOrDefault(each.dtype(), each.dtype())
                + (variant.isEmpty() ? "" : ", " + VARIANTS.getOrDefault(variant, variant));
    }
}
