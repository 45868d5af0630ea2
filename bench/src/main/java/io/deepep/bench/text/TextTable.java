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
import java.util.stream.Stream;

/** A table for terminals, in Markdown or on a page, defined column by column. */
public final class TextTable<T> {
    private static final int WIDEST_COLUMN = 80;

    private final List<TableColumn<T>> columns = new ArrayList<>();

    /**
     * A column.
     *
     * @param number whether it is aligned to the right
     * @param value what a row has in it; its text is shown
     */
    public record TableColumn<T>(String name, boolean number, Function<T, ?> value) {
        private ColumnData<T> forTerminals() {
            return new Column()
                    .header(name)
                    .dataAlign(number ? HorizontalAlign.RIGHT : HorizontalAlign.LEFT)
                    .maxWidth(WIDEST_COLUMN, OverflowBehaviour.NEWLINE)
                    .with(this::text);
        }

        private String text(T row) {
            return value.apply(row).toString();
        }
    }

    /** Adds a column that is aligned to the left. */
    public TextTable<T> text(String name, Function<T, ?> value) {
        columns.add(new TableColumn<>(name, false, value));
        return this;
    }

    /** Adds a column that is aligned to the right. */
    public TextTable<T> right(String name, Function<T, ?> value) {
        columns.add(new TableColumn<>(name, true, value));
        return this;
    }

    /** Adds a column of numbers, each written as {@code format} says. */
    public TextTable<T> number(String name, String format, ToDoubleFunction<T> value) {
        return right(name, each -> Decimals.of(format, value.applyAsDouble(each)));
    }

    /** The columns so far. */
    public List<TableColumn<T>> columns() {
        return columns;
    }

    /** The table with a row for each of {@code rows}. */
    public String of(List<T> rows) {
        return AsciiTable.getTable(
                AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS,
                rows,
                columns.stream().map(TableColumn::forTerminals).toList());
    }

    /** The same in Markdown. */
    public String markdown(List<T> rows) {
        StringBuilder text = new StringBuilder(line(columns.stream().map(TableColumn::name)));
        columns.forEach(column -> text.append(column.number() ? "|--:" : "|---"));
        text.append("|\n");
        rows.forEach(row -> text.append(line(columns.stream().map(each -> each.text(row)))));
        return text.toString();
    }

    private static String line(Stream<String> cells) {
        List<String> all = cells.toList();
        return all.stream().allMatch(String::isEmpty)
                ? "| ".repeat(all.size()) + "|\n"
                : "| " + String.join(" | ", all) + " |\n";
    }
}
