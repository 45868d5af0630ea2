package io.deepep.bench.run;

import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A progress bar on standard error where a person is watching, else nothing. */
public final class Progress implements AutoCloseable {
    private static final String ERASE_LINE = "\r\u001b[2K";
    private static final int UPDATE_MILLIS = 200;

    private final Console console;
    private final ProgressBar bar;

    private Progress(Console console, ProgressBar bar) {
        this.console = console;
        this.bar = bar;
    }

    /**
     * A bar that is gone when it is closed.
     *
     * @param task what the steps are, in a word
     */
    public static Progress of(Console console, String task, int steps) {
        if (!console.terminal()) {
            return new Progress(console, null);
        }
        ProgressBar bar =
                new ProgressBarBuilder()
                        .setTaskName(task)
                        .setInitialMax(steps)
                        .setStyle(ProgressBarStyle.ASCII)
                        .setUpdateIntervalMillis(UPDATE_MILLIS)
                        .setConsumer(new ConsoleProgressBarConsumer(System.err))
                        .clearDisplayOnFinish()
                        .build();
        return new Progress(console, bar);
    }

    /** Shows what is being worked on. */
    public void at(String name) {
        if (bar != null) {
            bar.setExtraMessage(name);
        }
    }

    /** One step is done. */
    public void step() {
        if (bar != null) {
            bar.step();
        }
    }

    /** Makes room for a line of results. */
    void clear() {
        if (bar != null) {
            console.err().print(ERASE_LINE);
            console.err().flush();
        }
    }

    @Override
    public void close() {
        if (bar != null) {
            bar.close();
        }
    }
}
