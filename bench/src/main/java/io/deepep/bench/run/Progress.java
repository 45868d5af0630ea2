package io.deepep.bench.run;

import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A progress bar on standard error where a person is watching, else nothing. */
final class Progress implements AutoCloseable {
    private static final String ERASE_LINE = "\r\u001b[2K";
    private static final int UPDATE_MILLIS = 200;

    private final Console console;
    private final ProgressBar bar;

    private Progress(Console console, ProgressBar bar) {
        this.console = console;
        this.bar = bar;
    }

    static Progress of(Console console, int steps) {
        if (!console.terminal()) {
            return new Progress(console, null);
        }
        ProgressBar bar =
                new ProgressBarBuilder()
                        .setTaskName("cases")
                        .setInitialMax(steps)
                        .setStyle(ProgressBarStyle.ASCII)
                        .setUpdateIntervalMillis(UPDATE_MILLIS)
                        .setConsumer(new ConsoleProgressBarConsumer(System.err))
                        .clearDisplayOnFinish()
                        .build();
        return new Progress(console, bar);
    }

    void at(String name) {
        if (bar != null) {
            bar.setExtraMessage(name);
        }
    }

    void step() {
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
