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
    private static final String ERASE_LINE = "\r\u001b[2K";

    /** A line longer than the terminal is wide is cut, so that it can be erased. */
    private static final String NO_WRAP = "\u001b[?7l";

    private static final String WRAP = "\u001b[?7h";

    /** Shows a line that is gone when the next one comes, where a person is watching. */
    synchronized void show(String line) {
        if (terminal) {
            out.print(ERASE_LINE + NO_WRAP + line + WRAP);
            out.flush();
        }
    }

    /** Makes room for another line where the last was shown. */
    synchronized void erase() {
        if (terminal) {
            out.print(ERASE_LINE);
            out.flush();
        }
    }

    /** Writes a formatted line of results. */
    @SuppressWarnings(
            "AnnotateFormatMethod") // the annotation would be a dependency for this one method
    public synchronized void line(String format, Object... values) {
        erase();
        out.println(String.format(Locale.ROOT, format, values));
    }

    /** Writes a line of complaint. */
    public synchronized void complain(String line) {
        erase();
        err.println("deepep: " + line);
    }

    /** Writes lines as they are. */
    public synchronized void print(String lines) {
        erase();
        lines.lines().forEach(out::println);
    }

    /** Writes everything out. */
    public void flush() {
        out.flush();
        err.flush();
    }
}
