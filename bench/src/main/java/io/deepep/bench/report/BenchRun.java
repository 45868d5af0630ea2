package io.deepep.bench.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.UsageException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IntSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What one run of a bench recorded.
 *
 * @param name as {@link #name} has it
 * @param records in the order of the file
 */
public record BenchRun(String name, List<OperationRecord> records) {
    private static final ObjectMapper JSON =
            new ObjectMapper().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    /**
     * Reads what {@code --json} wrote.
     *
     * @throws UsageException if it is nothing of the kind
     */
    public static BenchRun read(Path file) {
        return read(file, List.of(file));
    }

    /** As one of several that are shown together. */
    static BenchRun read(Path file, List<Path> all) {
        List<JsonNode> nodes = JsonRecords.parse(file);
        if (!JsonRecords.have("p50Micros", nodes)) {
            throw new UsageException(
                    file
                            + " has no records of operations; give a file that bench normal or bench low-latency wrote"
                            + " with --json");
        }
        List<OperationRecord> records = new ArrayList<>();
        try {
            for (JsonNode each : nodes) {
                records.add(JSON.treeToValue(each, OperationRecord.class));
            }
        } catch (JsonProcessingException malformed) {
            throw new UsageException(
                    file
                            + " is not what deepep bench --json writes: "
                            + malformed.getOriginalMessage());
        }
        for (int i = 0; i < records.size(); i++) {
            if (!records.get(i).hasWhatReportsNeed()) {
                throw new UsageException(
                        "%s is not what deepep bench --json writes: record %s lacks a field, or has a number that no run has"
                                .formatted(file, i + 1));
            }
        }
        return new BenchRun(name(file, all), records);
    }

    /**
     * A file's name without its extension, behind the folders that tell it from others of {@code
     * all}, or with it where none does: plots are files of that name.
     */
    static String name(Path file, List<Path> all) {
        int folders = 0;
        while (folders < absolute(file).getNameCount() && isOfAnother(file, folders, all)) {
            folders++;
        }
        boolean isUnique = !isOfAnother(file, folders, all);
        return isUnique ? name(file, folders) : file.getFileName().toString();
    }

    private static boolean isOfAnother(Path file, int folders, List<Path> all) {
        return all.stream()
                .filter(other -> !absolute(other).equals(absolute(file)))
                .anyMatch(other -> name(other, folders).equals(name(file, folders)));
    }

    private static String name(Path file, int folders) {
        String name = file.getFileName().toString();
        int dot = name.lastIndexOf('.');
        Path whole = absolute(file).resolveSibling(dot > 0 ? name.substring(0, dot) : name);
        int end = whole.getNameCount();
        return whole.subpath(Math.max(0, end - 1 - folders), end).toString().replace('/', '-');
    }

    private static Path absolute(Path file) {
        return file.toAbsolutePath().normalize();
    }

    OperationRecord any() {
        return records.getFirst();
    }

    /** Of each operation, dtype and number of tokens the fastest, in the order of the file. */
    List<OperationRecord> fastest() {
        return fastest(records, each -> List.of(OperationNames.of(each), each.tokens()));
    }

    /** Of the records with the same {@code key} the fastest, in their order. */
    public static List<OperationRecord> fastest(
            List<OperationRecord> records, Function<OperationRecord, Object> key) {
        Map<Object, OperationRecord> best = new LinkedHashMap<>();
        for (OperationRecord each : records) {
            best.merge(key.apply(each), each, (a, b) -> a.p50Micros() <= b.p50Micros() ? a : b);
        }
        return List.copyOf(best.values());
    }

    /** Those of {@link #fastest} whose ceiling is known. */
    List<OperationRecord> fastestWithShare() {
        return fastest().stream().filter(each -> !Double.isNaN(share(each))).toList();
    }

    /** Those with {@code sms} multiprocessors. */
    List<OperationRecord> withSms(int sms) {
        List<OperationRecord> chosen = records.stream().filter(each -> each.sms() == sms).toList();
        if (chosen.isEmpty()) {
            throw new UsageException("no record of " + name + " has sms=" + sms);
        }
        return chosen;
    }

    /** The share of the ceiling: a bare copy on GPUs, a memory copy on the host; NaN if unknown. */
    static double share(OperationRecord each) {
        Double share = each.gpu() != null ? each.gpu().ceilingShare() : each.memoryCopyShare();
        return share == null ? Double.NaN : share;
    }

    /** Bytes per second: over the busiest GPU's links, or on the host of memory. */
    static double bandwidth(OperationRecord each) {
        return each.gpu() != null
                ? each.gpu().linkBytesPerSecond()
                : each.bytesPerSecond(each.movedBytes());
    }

    /**
     * Of the records that carry counts of the routing the one of most tokens; null where the run is
     * too old to have any.
     */
    OperationRecord routed() {
        return records.stream()
                .filter(each -> each.routing() != null)
                .max(Comparator.comparingInt(OperationRecord::tokens))
                .orElse(null);
    }

    /** GPU or processor, ranks and nodes, as in {@code 4 x NVIDIA H200, 1 x 4 ranks}. */
    String machine() {
        OperationRecord any = any();
        String where = any.gpu() == null ? any.cpu() : any.gpu().gpus() + " x " + any.gpu().gpu();
        return where + ", " + any.nodes() + " x " + any.ranks() / any.nodes() + " ranks";
    }

    /** As in {@code 4096 tokens per rank, hidden 7168, top-8 of 256 experts}. */
    String shape() {
        OperationRecord any = any();
        IntSummaryStatistics tokens =
                records.stream().mapToInt(OperationRecord::tokens).summaryStatistics();
        return "%s%s tokens per rank, hidden %s, top-%s of %s experts"
                .formatted(
                        tokens.getMin() == tokens.getMax() ? "" : tokens.getMin() + " to ",
                        tokens.getMax(),
                        any.hidden(),
                        any.topk(),
                        any.experts());
    }
}
