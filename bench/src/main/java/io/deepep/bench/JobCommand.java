package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.RankSource;
import java.util.concurrent.Callable;
import java.util.function.IntFunction;
import picocli.CommandLine.Mixin;

/** A command whose ranks are threads, or processes if a launcher started several. */
abstract class JobCommand implements Callable<Integer> {
    private final Console console;

    @Mixin private JobOptions options;

    @Mixin private GroupOptions group;

    @Mixin private FlightRecorderOption recorder = new FlightRecorderOption();

    JobCommand(Console console, JobOptions options, GroupOptions group) {
        this.console = console;
        this.options = options;
        this.group = group;
    }

    /** Refuses options of the command's own that cannot be. */
    void validate() {}

    /**
     * Does the job and reports.
     *
     * @param ranks makes as many as it is asked for
     * @return whether all went well
     */
    abstract boolean run(Console report, Job job, IntFunction<RankSource> ranks);

    @Override
    public final Integer call() {
        validate();
        recorder.validate();
        return LaunchedGroup.run(
                options.timeout(),
                launched -> {
                    Console report = launched.console(console);
                    return options.run(
                            group, job -> recorder.record(() -> run(report, job, launched::ranks)));
                });
    }
}
