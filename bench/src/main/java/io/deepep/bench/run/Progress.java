package io.deepep.bench.run;

import java.time.Duration;
import java.util.Locale;

/** A line that says how far a command is, where a person is watching; else nothing. */
public final class Progress implements AutoCloseable {
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
        console.show("%s %s/%s%s%s".formatted(task, done, steps, left(), current));
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

    @Override
    public void close() {
        console.erase();
    }
}
