package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.MarkdownTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Records as Markdown. Times are of the slowest rank, medians. */
final class MarkdownTables {
    private static final double GIGA = 1e9;
    private static final String BEST = "best";

    private MarkdownTables() {}

    /** Where a figure comes from: the machine, its driver, the commit, the shape. */
    static String facts(BenchRun run) {
        OperationRecord any = run.any();
        MarkdownTable out = new MarkdownTable(2, List.of("", ""));
        out.row("Machine", run.machine());
        if (any.gpu() != null) {
            out.row("Driver", any.gpu().driver());
        }
        out.row("Commit", "`" + any.commit() + "`");
        out.row("Shape", run.shape());
        out.row("Runs", any.repeats() + " of each operation, " + any.time().substring(0, 10));
        if (any.gpu() != null) {
            out.row(
                    "Best bare copy",
                    Decimals.of("%.0f GB/s", any.gpu().ceilingBytesPerSecond() / GIGA));
        } else if (any.memoryCopyBytesPerSecond() != null) {
            out.row(
                    "Memory copy",
                    Decimals.of("%.1f GB/s", any.memoryCopyBytesPerSecond() / GIGA)
                            + " read and written");
        }
        return out.toString();
    }

    /** The records of one number of multiprocessors, or of each operation the fastest. */
    static List<OperationRecord> chosen(BenchRun run, String sms) {
        if (sms.equals(BEST)) {
            return run.fastest();
        }
        if (!sms.matches("[0-9]{1,4}")) {
            throw new UsageException("sms=" + sms + " is neither a number nor " + BEST);
        }
        return run.withSms(Integer.parseInt(sms));
    }

    /** Time, bandwidth and share of the ceiling by operation. */
    static String times(BenchRun run, String sms) {
        boolean gpu = run.any().gpu() != null;
        MarkdownTable out =
                new MarkdownTable(
                        1,
                        List.of(
                                "operation",
                                "SMs",
                                "time",
                                gpu ? "rows over links" : "rows read and written",
                                gpu ? "share of best bare copy" : "share of memory copy"));
        for (OperationRecord each : chosen(run, sms)) {
            out.row(
                    OperationNames.of(each),
                    Integer.toString(each.sms()),
                    time(each),
                    Decimals.of(gpu ? "%.0f GB/s" : "%.1f GB/s", BenchRun.bandwidth(each) / GIGA),
                    Decimals.of("%.0f %%", 100 * BenchRun.share(each)));
        }
        return out.toString();
    }

    static String time(OperationRecord each) {
        return each.p50Micros() < 10_000
                ? Decimals.of("%.0f µs", each.p50Micros())
                : Decimals.of("%.1f ms", each.p50Micros() / 1e3);
    }

    /** Microseconds, and the share of the ceiling, by operation and number of multiprocessors. */
    static String sweep(BenchRun run) {
        Set<Integer> numbers = new TreeSet<>();
        Map<String, Map<Integer, OperationRecord>> byName = new LinkedHashMap<>();
        for (OperationRecord each : run.records()) {
            numbers.add(each.sms());
            byName.computeIfAbsent(OperationNames.of(each), name -> new LinkedHashMap<>())
                    .put(each.sms(), each);
        }
        List<String> head = new ArrayList<>(List.of("SMs"));
        numbers.forEach(number -> head.add(number.toString()));
        MarkdownTable out = new MarkdownTable(1, head);
        byName.forEach(
                (name, bySms) -> {
                    List<String> cells = new ArrayList<>(List.of(name));
                    for (int number : numbers) {
                        OperationRecord each = bySms.get(number);
                        cells.add(
                                each == null
                                        ? ""
                                        : Decimals.of("%.0f", each.p50Micros())
                                                + Decimals.of(
                                                        " (%.0f %%)", 100 * BenchRun.share(each)));
                    }
                    out.row(cells);
                });
        return out.toString();
    }

    /** A row for each run, named by its file, and a column for each operation. */
    static String shapes(List<BenchRun> runs, String sms) {
        Set<String> operations = new LinkedHashSet<>();
        runs.forEach(
                run -> chosen(run, sms).forEach(each -> operations.add(OperationNames.of(each))));
        List<String> head = new ArrayList<>(List.of("run", "tokens, ranks"));
        head.addAll(operations);
        MarkdownTable out = new MarkdownTable(1, head);
        for (BenchRun run : runs) {
            Map<String, OperationRecord> byName = new LinkedHashMap<>();
            chosen(run, sms).forEach(each -> byName.put(OperationNames.of(each), each));
            List<String> cells = new ArrayList<>();
            cells.add(run.name());
            cells.add(run.any().tokens() + ", " + run.any().ranks());
            for (String operation : operations) {
                OperationRecord each = byName.get(operation);
                cells.add(
                        each == null
                                ? ""
                                : time(each)
                                        + Decimals.of(", %.0f %%", 100 * BenchRun.share(each)));
            }
            out.row(cells);
        }
        return out.toString();
    }

    /** Microseconds by tokens per rank and operation, between events or of the whole call. */
    static String tokens(BenchRun run, String sms, String what) {
        Set<String> names = new LinkedHashSet<>();
        Map<Integer, List<OperationRecord>> byTokens = new LinkedHashMap<>();
        for (OperationRecord each : run.records()) {
            names.add(OperationNames.of(each));
            byTokens.computeIfAbsent(each.tokens(), number -> new ArrayList<>()).add(each);
        }
        List<String> head = new ArrayList<>(List.of("tokens"));
        names.forEach(name -> head.add(name.replaceFirst("^low-latency ", "")));
        MarkdownTable out = new MarkdownTable(1, head);
        byTokens.forEach(
                (tokens, records) -> {
                    Map<String, Double> micros = new HashMap<>();
                    for (OperationRecord each : chosen(new BenchRun(run.name(), records), sms)) {
                        boolean call = what.equals("call") && each.gpu() != null;
                        double time = call ? each.gpu().callP50Micros() : each.p50Micros();
                        micros.put(OperationNames.of(each), time);
                    }
                    List<String> cells = new ArrayList<>(List.of(tokens.toString()));
                    for (String name : names) {
                        Double time = micros.get(name);
                        cells.add(time == null ? "" : Decimals.of("%.1f", time));
                    }
                    out.row(cells);
                });
        return out.toString();
    }
}
