package io.deepep.bench.run;

import java.time.Duration;
import java.util.Locale;

/** A line that says how far a command is, where a person is watching; else nothing. */
public final class Progress implements AutoCloseable {
    private static final String ERASE_LINE = "\r\u001b[2K";

    /** A line longer than the terminal is wide is cut, so that it can be erased. */
    private static final String NO_WRAP = "\u001b[?7l";

    private static final String WRAP = "\u001b[?7h";

    private final Console console;
    private final String task;
    private final int steps;
    private final long start = System.nanoTime();
    private String name = "";
    private int done;

    private Progress(Console console, String task, int steps) {
        this.console = console;
        this.task = task;
        this.steps = steps;
    }

    /**
     * A line that is gone when this is closed.
     *
     * @param task what the steps are, in a word
     */
    public static Progress of(Console console, String task, int steps) {
        Progress progress = new Progress(console, task, steps);
        progress.show();
        return progress;
    }

    /** Shows what is being worked on. */
    public synchronized void at(String name) {
        this.name = name;
        show();
    }

    /** One step is done, which the next {@link #at} shows. */
    public synchronized void step() {
        done++;
    }

    private synchronized void show() {
        String current = name.isEmpty() ? "" : ": " + name;
        write(
                "%s%s%s %s/%s%s%s%s"
                        .formatted(ERASE_LINE, NO_WRAP, task, done, steps, left(), current, WRAP));
    }

    /** If the other steps take as long as those so far. */
    private String left() {
        if (done == 0) {
            return "";
        }
        Duration left =
                Duration.ofNanos(System.nanoTime() - start)
                        .dividedBy(done)
                        .multipliedBy(steps - done);
        return String.format(Locale.ROOT, ", %d:%02d left", left.toMinutes(), left.toSecondsPart());
    }

    /** Makes room for a line of results. */
    void clear() {
        write(ERASE_LINE);
    }

    private void write(String text) {
        if (console.terminal()) {
            console.out().print(text);
            console.out().flush();
        }
    }

    @Override
    public synchronized void close() {
        clear();
    }
}
