package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Stream;

/** Records as Markdown. Times are of the slowest rank, medians. */
final class MarkdownTables {
    private static final double GIGA = 1e9;
    private static final String BEST = "best";

    private MarkdownTables() {}

    /** Where a figure comes from: the machine, its driver, the commit, the shape. */
    static String facts(BenchRun run) {
        OperationRecord any = run.any();
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put("Machine", run.machine());
        if (any.gpu() != null) {
            facts.put("Driver", any.gpu().driver());
        }
        facts.put("Commit", "`" + any.commit() + "`");
        facts.put("Shape", run.shape());
        facts.put("Runs", any.repeats() + " of each operation, " + any.time().substring(0, 10));
        if (any.gpu() != null && any.gpu().ceilingBytesPerSecond() != null) {
            facts.put(
                    "Best bare copy",
                    Decimals.of("%.0f GB/s", any.gpu().ceilingBytesPerSecond() / GIGA));
        } else if (any.memoryCopyBytesPerSecond() != null) {
            facts.put(
                    "Memory copy",
                    Decimals.of("%.1f GB/s", any.memoryCopyBytesPerSecond() / GIGA)
                            + " read and written");
        }
        return new TextTable<String>()
                .text("", name -> name)
                .text("", facts::get)
                .markdown(List.copyOf(facts.keySet()));
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
        List<OperationRecord> chosen = chosen(run, sms);
        return new TextTable<OperationRecord>()
                .text("operation", each -> OperationNames.of(each, chosen))
                .number("SMs", "%.0f", OperationRecord::sms)
                .right("time", MarkdownTables::time)
                .number(
                        gpu ? "rows over links" : "rows read and written",
                        gpu ? "%.0f GB/s" : "%.1f GB/s",
                        each -> BenchRun.bandwidth(each) / GIGA)
                .number(
                        gpu ? "share of best bare copy" : "share of memory copy",
                        "%.0f %%",
                        each -> 100 * BenchRun.share(each))
                .markdown(chosen);
    }

    static String time(OperationRecord each) {
        return each.p50Micros() < 10_000
                ? Decimals.of("%.0f µs", each.p50Micros())
                : Decimals.of("%.1f ms", each.p50Micros() / 1e3);
    }

    /** Microseconds, and the share of the ceiling, by operation and number of multiprocessors. */
    static String sweep(BenchRun run) {
        TextTable<String> table = new TextTable<String>().text("SMs", name -> name);
        for (int sms : new TreeSet<>(run.records().stream().map(OperationRecord::sms).toList())) {
            List<OperationRecord> records = run.withSms(sms);
            table.right("" + sms, name -> cell(records, name, MarkdownTables::microsAndShare));
        }
        return table.markdown(names(run.records().stream()));
    }

    /** A row for each run, named by its file, and a column for each operation. */
    static String shapes(List<BenchRun> runs, String sms) {
        TextTable<BenchRun> table =
                new TextTable<BenchRun>()
                        .text("run", BenchRun::name)
                        .right(
                                "tokens, ranks",
                                run -> run.any().tokens() + ", " + run.any().ranks());
        for (String name : names(runs.stream().flatMap(run -> chosen(run, sms).stream()))) {
            table.right(name, run -> cell(chosen(run, sms), name, MarkdownTables::timeAndShare));
        }
        return table.markdown(runs);
    }

    /** Microseconds by tokens per rank and operation, between events or of the whole call. */
    static String tokens(BenchRun run, String sms, String what) {
        Map<Integer, List<OperationRecord>> byTokens = new LinkedHashMap<>();
        for (OperationRecord each : run.records()) {
            byTokens.computeIfAbsent(each.tokens(), number -> new ArrayList<>()).add(each);
        }
        TextTable<BenchRun> table =
                new TextTable<BenchRun>()
                        .text("tokens", each -> Integer.toString(each.any().tokens()));
        for (String name : names(run.records().stream())) {
            table.right(
                    name.replaceFirst("^low-latency ", ""),
                    each -> cell(chosen(each, sms), name, record -> micros(record, what)));
        }
        return table.markdown(
                byTokens.values().stream()
                        .map(records -> new BenchRun(run.name(), records))
                        .toList());
    }

    private static String micros(OperationRecord each, String what) {
        boolean call = what.equals("call") && each.gpu() != null;
        return Decimals.of("%.1f", call ? each.gpu().callP50Micros() : each.p50Micros());
    }

    private static String microsAndShare(OperationRecord each) {
        return Decimals.of("%.0f", each.p50Micros())
                + Decimals.of(" (%.0f %%)", 100 * BenchRun.share(each));
    }

    private static String timeAndShare(OperationRecord each) {
        return time(each) + Decimals.of(", %.0f %%", 100 * BenchRun.share(each));
    }

    private static List<String> names(Stream<OperationRecord> records) {
        return records.map(OperationNames::of).distinct().toList();
    }

    /** What a table says of an operation's record, the last of several; nothing without any. */
    private static String cell(
            List<OperationRecord> records, String name, Function<OperationRecord, String> text) {
        return records.stream()
                .filter(each -> OperationNames.of(each).equals(name))
                .reduce((first, second) -> second)
                .map(text)
                .orElse("");
    }
}
