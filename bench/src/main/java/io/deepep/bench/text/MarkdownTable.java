package io.deepep.bench.text;

import java.util.List;

/** A table in Markdown, written row by row. */
public final class MarkdownTable {
    private final StringBuilder text = new StringBuilder();

    /**
     * A table without rows yet.
     *
     * @param textColumns so many columns are aligned to the left, those after them to the right
     */
    public MarkdownTable(int textColumns, List<String> head) {
        row(head);
        text.append("|---".repeat(textColumns))
                .append("|--:".repeat(head.size() - textColumns))
                .append("|\n");
    }

    /** Adds a row, a cell for each column. */
    public MarkdownTable row(List<String> cells) {
        String line = "| " + String.join(" | ", cells) + " |\n";
        text.append(cells.stream().allMatch(String::isEmpty) ? line.replace("  ", " ") : line);
        return this;
    }

    /** {@link #row(List)}. */
    public MarkdownTable row(String... cells) {
        return row(List.of(cells));
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
