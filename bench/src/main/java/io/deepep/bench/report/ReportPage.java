package io.deepep.bench.report;

import com.github.mustachejava.DefaultMustacheFactory;
import com.github.mustachejava.Mustache;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;

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
        void plot(String file, String alt, String svg) {
            plots.add(new Plot(file, alt, svg));
        }
    }

    /** A picture. */
    record Plot(String file, String alt, String svg) {}

    /** A table that can be sorted by its columns. */
    static final class Grid {
        final String caption;
        final List<Column> columns = new ArrayList<>();
        final List<Row> rows = new ArrayList<>();

        /** A table without columns yet. */
        Grid(String caption) {
            this.caption = caption;
        }

        /** Adds a column of text. */
        Grid text(String name) {
            columns.add(new Column(name, false));
            return this;
        }

        /** Adds a column of numbers. */
        Grid number(String name) {
            columns.add(new Column(name, true));
            return this;
        }

        /** Adds a row, a value per column. */
        void row(boolean detail, Object... values) {
            List<Cell> cells = new ArrayList<>();
            for (int i = 0; i < values.length; i++) {
                boolean number = columns.get(i).number;
                cells.add(
                        new Cell(values[i].toString(), sortKey(values[i], number), number, i == 0));
            }
            rows.add(new Row(detail, cells));
        }

        /** What a column of numbers is sorted by; nothing where the text itself will do. */
        private static String sortKey(Object value, boolean number) {
            if (value instanceof Quantity quantity) {
                return Double.isNaN(quantity.value()) ? "" : Double.toString(quantity.value());
            }
            return number ? value.toString() : "";
        }

        /** Whether there are rows that are shown on demand. */
        boolean hasDetails() {
            return rows.stream().anyMatch(row -> row.detail);
        }
    }

    /** The head of a column. */
    record Column(String name, boolean number) {}

    /** A row, shown on demand if it is a detail. */
    record Row(boolean detail, List<Cell> cells) {}

    /** A cell; the first of a row says what the row is about. */
    record Cell(String text, String sortKey, boolean number, boolean head) {}

    /** Adds a part. */
    Section section(String sectionTitle, String text) {
        Section section =
                new Section(
                        "s" + sections.size(),
                        sectionTitle,
                        text,
                        new ArrayList<>(),
                        new ArrayList<>());
        sections.add(section);
        return section;
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
