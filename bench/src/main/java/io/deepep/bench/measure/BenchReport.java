package io.deepep.bench.measure;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.github.freva.asciitable.AsciiTable;
import com.github.freva.asciitable.Column;
import com.github.freva.asciitable.ColumnData;
import com.github.freva.asciitable.HorizontalAlign;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/** Records as a table for people and as JSON for programs. */
public final class BenchReport {
    private static final double GIGA = 1e9;
    private static final double MICROS_PER_SECOND = 1e6;
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private BenchReport() {}

    /** Writes the table. */
    public static void print(Console console, List<OperationRecord> records) {
        OperationRecord any = records.getFirst();
        console.line(
                "memory copy %.1f GB/s (read + written), %s",
                any.memoryCopyBytesPerSecond() / GIGA, any.cpu());
        console.out()
                .println(
                        AsciiTable.getTable(
                                records,
                                List.of(
                                        left("operation", OperationRecord::op),
                                        left("dtype", OperationRecord::dtype),
                                        right("sms", r -> Integer.toString(r.sms())),
                                        right("p50 us", r -> number("%.0f", r.p50Micros())),
                                        right("p99 us", r -> number("%.0f", r.p99Micros())),
                                        right("max us", r -> number("%.0f", r.maxMicros())),
                                        right(
                                                "logical MB",
                                                r -> number("%.1f", r.logicalBytes() / 1e6)),
                                        right(
                                                "NVLink MB",
                                                r -> number("%.1f", r.nvlinkBytes() / 1e6)),
                                        right("RDMA MB", r -> number("%.1f", r.rdmaBytes() / 1e6)),
                                        right(
                                                "moved GB/s",
                                                r ->
                                                        number(
                                                                "%.2f",
                                                                r.movedBytes()
                                                                        / r.p50Micros()
                                                                        * MICROS_PER_SECOND
                                                                        / GIGA)),
                                        right(
                                                "of copy",
                                                r ->
                                                        number(
                                                                "%.0f %%",
                                                                100 * r.memoryCopyShare())))));
    }

    private static ColumnData<OperationRecord> left(
            String header, Function<OperationRecord, String> value) {
        return new Column().header(header).dataAlign(HorizontalAlign.LEFT).with(value);
    }

    private static ColumnData<OperationRecord> right(
            String header, Function<OperationRecord, String> value) {
        return new Column().header(header).dataAlign(HorizontalAlign.RIGHT).with(value);
    }

    private static String number(String format, double value) {
        return String.format(Locale.ROOT, format, value);
    }

    /** Writes the records as a JSON array. */
    public static void write(Path file, List<OperationRecord> records) {
        try {
            JSON.writeValue(file.toFile(), records);
        } catch (IOException unwritable) {
            throw new UsageException(
                    "--json: cannot write " + file + ": " + unwritable.getMessage());
        }
    }
}
