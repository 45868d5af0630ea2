package io.deepep.bench.measure;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.Session;
import io.deepep.bench.text.TextTable;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedMap;
import java.util.stream.Collectors;

/** Records as a table for people and as JSON for programs. */
public final class BenchReport {
    private static final double GIGA = 1e9;
    private static final double MEGA = 1e6;
    private static final double MIB = 1L << 20;
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private BenchReport() {}

    /** Writes the table. */
    public static void print(Console console, List<OperationRecord> records) {
        if (records.getFirst().gpu() == null) {
            printHost(console, records);
        } else {
            printGpus(console, records);
        }
    }

    private static void printHost(Console console, List<OperationRecord> records) {
        OperationRecord any = records.getFirst();
        console.line(
                "memory copy %.1f GB/s (read + written), %s; MB and moved GB/s: of all ranks together",
                any.memoryCopyBytesPerSecond() / GIGA, any.cpu());
        console.print(
                times("%.0f")
                        .number("logical MB", "%.1f", r -> r.logicalBytes() / MEGA)
                        .number("NVLink MB", "%.1f", r -> r.nvlinkBytes() / MEGA)
                        .number("RDMA MB", "%.1f", r -> r.rdmaBytes() / MEGA)
                        .number("moved GB/s", "%.2f", r -> r.bytesPerSecond(r.movedBytes()) / GIGA)
                        .number("of copy", "%.0f %%", r -> 100 * r.memoryCopyShare())
                        .of(records));
    }

    private static void printGpus(Console console, List<OperationRecord> records) {
        OperationRecord any = records.getFirst();
        GpuFigures gpu = any.gpu();
        console.line(
                "%s, commit %s; a buffer takes %.1f MiB of device memory per rank",
                gpu.driver(), any.commit(), gpu.deviceBytesPerRank() / MIB);
        console.line(
                "received: all rows of a rank, as DeepEP counts; links: rows from or to other ranks,"
                        + " per GPU; enqueue, call: on the host");
        if (any.ranks() > gpu.gpus()) {
            console.line(
                    "%d ranks share %d GPUs: rows between ranks of one GPU cross its memory and no link",
                    any.ranks(), gpu.gpus());
        }
        TextTable<OperationRecord> table = times("%.1f");
        if (gpu.emptyKernelMicros() != null) {
            console.line(
                    "kernel: p50 less what an empty kernel of as many blocks takes between the same"
                            + " events");
            table.number("kernel us", "%.1f", r -> r.p50Micros() - r.gpu().emptyKernelMicros());
        }
        table.number("enqueue us", "%.1f", r -> r.gpu().enqueueP50Micros())
                .number("call us", "%.1f", r -> r.gpu().callP50Micros())
                .number(
                        "received GB/s",
                        "%.1f",
                        r -> r.bytesPerSecond(r.logicalBytes()) / GIGA / r.ranks())
                .number("links GB/s", "%.1f", r -> r.gpu().linkBytesPerSecond() / GIGA);
        if (gpu.ceilingShare() != null) {
            table.number("of copy, same sms", "%.0f %%", r -> 100 * r.gpu().sameSmsCeilingShare())
                    .number("of best copy", "%.0f %%", r -> 100 * r.gpu().ceilingShare());
        }
        console.print(table.of(records));
    }

    private static TextTable<OperationRecord> times(String format) {
        return new TextTable<OperationRecord>()
                .text("operation", OperationRecord::op)
                .text("dtype", OperationRecord::dtype)
                .number("tokens", "%.0f", OperationRecord::tokens)
                .number("sms", "%.0f", OperationRecord::sms)
                .number("p50 us", format, OperationRecord::p50Micros)
                .number("p99 us", format, OperationRecord::p99Micros)
                .number("max us", format, OperationRecord::maxMicros);
    }

    /** Writes what a bare copy reached, a line for each direction. */
    public static void print(Console console, Ceiling ceiling) {
        console.line(
                "bare copy, rows of %d bytes, push: %s", ceiling.rowBytes(), line(ceiling.push()));
        console.line(
                "bare copy, rows of %d bytes, pull: %s", ceiling.rowBytes(), line(ceiling.pull()));
    }

    private static String line(SortedMap<Integer, Double> bySms) {
        return bySms.entrySet().stream()
                        .map(each -> each.getKey() + " SMs " + Math.round(each.getValue() / GIGA))
                        .collect(Collectors.joining(", "))
                + " GB/s";
    }

    /** Prints the records of a run of {@code session}, and writes them where that is asked for. */
    public static void publish(
            Console console,
            Session session,
            List<OperationRecord> records,
            ComparedOptions options) {
        print(console, records);
        options.compare(console, records.stream().map(OperationRecord::asFigure).toList());
        if (options.json() != null && session.writesResults()) {
            write(options.json(), records);
        }
    }

    /** Writes a record, or a list of them as an array. */
    public static void write(Path file, Object records) {
        OutputFile.write("--json", file, json(records));
    }

    /** What programs read. */
    public static String json(Object records) {
        try {
            return JSON.writeValueAsString(records);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
