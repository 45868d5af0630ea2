package io.deepep.bench.run;

import java.io.PrintWriter;
import java.util.Locale;

/**
 * Where a command writes.
 *
 * @param out results and, on a terminal, the line of {@link Progress}
 * @param err complaints
 * @param terminal whether a person is watching
 */
public record Console(PrintWriter out, PrintWriter err, boolean terminal) {
    /** Writes a formatted line of results. */
    @SuppressWarnings(
            "AnnotateFormatMethod") // the annotation would be a dependency for this one method
    public void line(String format, Object... values) {
        out.println(String.format(Locale.ROOT, format, values));
    }

    /** Writes a line of complaint. */
    public void complain(String line) {
        err.println("deepep: " + line);
    }

    /** Writes lines as they are. */
    public void print(String lines) {
        lines.lines().forEach(out::println);
    }

    /** Writes everything out. */
    public void flush() {
        out.flush();
        err.flush();
    }
}
