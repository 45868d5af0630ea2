package io.deepep.bench.run;

import me.tongfei.progressbar.DelegatingProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A progress bar where a person is watching, else nothing. */
public final class Progress implements AutoCloseable {
    private static final int UPDATE_MILLIS = 200;

    /**
     * Of most terminals. To find it out, the library would open the terminal, and give the signals
     * of the process back to the system: Ctrl-C would end a command without a report.
     */
    private static final int WIDTH = 79;

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
                        .setConsumer(new DelegatingProgressBarConsumer(console::show, WIDTH))
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

    @Override
    public void close() {
        if (bar != null) {
            bar.close();
            console.erase();
        }
    }
}
