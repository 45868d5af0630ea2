package io.deepep.bench.measure;

import com.github.freva.asciitable.AsciiTable;
import com.github.freva.asciitable.Column;
import com.github.freva.asciitable.ColumnData;
import com.github.freva.asciitable.HorizontalAlign;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** A table of records, column by column. */
final class Table {
    private final List<ColumnData<OperationRecord>> columns = new ArrayList<>();

    Table text(String header, Function<OperationRecord, String> value) {
        columns.add(new Column().header(header).dataAlign(HorizontalAlign.LEFT).with(value));
        return this;
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation would be a dependency for this alone
    Table number(String header, String format, ToDoubleFunction<OperationRecord> value) {
        columns.add(
                new Column()
                        .header(header)
                        .dataAlign(HorizontalAlign.RIGHT)
                        .with(
                                each ->
                                        String.format(
                                                Locale.ROOT, format, value.applyAsDouble(each))));
        return this;
    }

    String of(List<OperationRecord> records) {
        return AsciiTable.getTable(AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS, records, columns);
    }
}
