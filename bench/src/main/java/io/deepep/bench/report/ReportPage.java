package io.deepep.bench.report;

import com.github.mustachejava.DefaultMustacheFactory;
import com.github.mustachejava.Mustache;
import io.deepep.bench.text.TextTable;
import io.deepep.bench.text.TextTable.TableColumn;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * A page of sections, and its HTML: the template is {@code report.mustache}. Everything is in the
 * one file, so it can be sent around and opens without a network.
 */
final class ReportPage {
    private static final Mustache TEMPLATE =
            new DefaultMustacheFactory("io/deepep/bench/report").compile("report.mustache");

    final String title;
    final String made;
    final List<Section> sections = new ArrayList<>();

    /** An empty page. */
    ReportPage(String title, String made) {
        this.title = title;
        this.made = made;
    }

    /** A part with a heading. */
    record Section(String id, String title, String text, List<Plot> plots, List<Grid> tables) {
        /**
         * Adds a picture.
         *
         * @param file its name where plots are also written as files
         * @param alt what it shows, for those who do not see it
         * @param svg the file, which is also part of the page
         */
        Section plot(String file, String alt, String svg) {
            plots.add(new Plot(file, alt, svg));
            return this;
        }

        /** Adds a table that can be sorted by its columns. */
        <T> Section table(String caption, List<T> rows, TextTable<T> table) {
            return table(caption, rows, row -> false, table);
        }

        /** Adds one of which some rows are shown on demand. */
        <T> Section table(String caption, List<T> rows, Predicate<T> isDetail, TextTable<T> table) {
            tables.add(
                    new Grid(
                            caption,
                            table.columns(),
                            rows.stream()
                                    .map(row -> new Row(isDetail.test(row), cells(table, row)))
                                    .toList()));
            return this;
        }

        private static <T> List<Cell> cells(TextTable<T> table, T row) {
            List<Cell> cells = new ArrayList<>();
            for (TableColumn<T> column : table.columns()) {
                Object value = column.value().apply(row);
                String key = column.number() ? sortKey(value) : "";
                cells.add(new Cell(value.toString(), key, column.number(), cells.isEmpty()));
            }
            return cells;
        }

        /** What a column of numbers is sorted by. */
        private static String sortKey(Object value) {
            return value instanceof Quantity quantity ? quantity.key() : value.toString();
        }
    }

    /** A picture. */
    record Plot(String file, String alt, String svg) {}

    /** A table. */
    record Grid(String caption, List<?> columns, List<Row> rows) {
        /** Whether there are rows that are shown on demand. */
        boolean hasDetails() {
            return rows.stream().anyMatch(Row::detail);
        }
    }

    /** A row, shown on demand if it is a detail. */
    record Row(boolean detail, List<Cell> cells) {}

    /** A cell; the first of a row says what the row is about. */
    record Cell(String text, String sortKey, boolean number, boolean head) {}

    /** Adds a part. */
    Section section(String sectionTitle, String text) {
        String id = "s" + sections.size();
        sections.add(new Section(id, sectionTitle, text, new ArrayList<>(), new ArrayList<>()));
        return sections.getLast();
    }

    /** All pictures. */
    List<Plot> plots() {
        return sections.stream().flatMap(section -> section.plots().stream()).toList();
    }

    /** The page as HTML. */
    String html() {
        StringWriter out = new StringWriter();
        TEMPLATE.execute(out, this);
        return out.toString();
    }
}
