package io.deepep.bench.text;

import com.github.freva.asciitable.AsciiTable;
import com.github.freva.asciitable.Column;
import com.github.freva.asciitable.ColumnData;
import com.github.freva.asciitable.HorizontalAlign;
import com.github.freva.asciitable.OverflowBehaviour;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** A table for terminals or in Markdown, defined column by column. */
public final class TextTable<T> {
    private static final int WIDEST_COLUMN = 80;

    private final List<ColumnData<T>> columns = new ArrayList<>();

    /** Adds a column that is aligned to the left. */
    public TextTable<T> text(String header, Function<T, String> value) {
        return column(header, HorizontalAlign.LEFT, value);
    }

    /** Adds a column that is aligned to the right. */
    public TextTable<T> right(String header, Function<T, String> value) {
        return column(header, HorizontalAlign.RIGHT, value);
    }

    /** Adds a column of numbers, each written as {@code format} says. */
    public TextTable<T> number(String header, String format, ToDoubleFunction<T> value) {
        return right(header, each -> Decimals.of(format, value.applyAsDouble(each)));
    }

    private TextTable<T> column(String header, HorizontalAlign align, Function<T, String> value) {
        columns.add(
                new Column()
                        .header(header)
                        .dataAlign(align)
                        .maxWidth(WIDEST_COLUMN, OverflowBehaviour.NEWLINE)
                        .with(value));
        return this;
    }

    /** The table with a row for each of {@code rows}. */
    public String of(List<T> rows) {
        return AsciiTable.getTable(AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS, rows, columns);
    }

    /** The same in Markdown. */
    public String markdown(List<T> rows) {
        long texts =
                columns.stream()
                        .filter(column -> column.getDataAlign() == HorizontalAlign.LEFT)
                        .count();
        MarkdownTable table =
                new MarkdownTable((int) texts, columns.stream().map(Column::getHeader).toList());
        rows.forEach(
                row ->
                        table.row(
                                columns.stream().map(column -> column.getCellValue(row)).toList()));
        return table.toString();
    }
}
