package io.deepep.bench.plan;

import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.Progress;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.ModePlan;
import io.deepep.planner.Reference;
import io.deepep.planner.References;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code deepep plan}: what a model would need and do on a cluster that need not exist. */
@Command(
        name = "plan",
        description =
                "Simulates a model's routing on a cluster, and shows the size of buffers, the bytes on each link"
                        + " and the times.",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "[compare|start]")
public final class PlanCommand implements Runnable {
    private final Console console;

    @Mixin private PlanOptions options = new PlanOptions();

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Also writes the plans, one record per operation, as a JSON array.")
    private Path json;

    @Option(
            names = "--plot",
            paramLabel = "FILE",
            description = "Also draws the times of a sweep as an SVG file.")
    private Path plot;

    /** The command, which writes to {@code console}. */
    public PlanCommand(Console console) {
        this.console = console;
    }

    @Override
    public void run() {
        OutputFile.require("--json", json);
        if (plot != null) {
            requireDrawable();
        }
        OutputFile.require("--plot", plot);
        List<PlanOptions.Job> jobs = options.jobs();
        List<ModePlan> plans = new ArrayList<>();
        try (Progress progress = Progress.of(console, "plans", jobs.size())) {
            for (PlanOptions.Job job : jobs) {
                progress.at(job.name());
                plans.add(options.plan(job));
                progress.step();
            }
        }
        String routing = options.routing.describe();
        if (options.sweep) {
            PlanReport.printSweep(console, plans, routing);
        } else {
            PlanReport.print(console, plans, routing);
        }
        if (json != null) {
            BenchReport.write(json, PlanRecord.of(plans, routing, options.routing.seed()));
        }
        if (plot != null) {
            SweepPlot.write(plot, plans);
        }
    }

    private void requireDrawable() {
        if (!options.sweep) {
            throw new UsageException(
                    "--plot=" + plot + " needs --sweep: it draws times over world sizes");
        }
        if (!plot.toString().endsWith(".svg")) {
            throw new UsageException("--plot=" + plot + " does not end in .svg");
        }
    }

    @Command(
            name = "start",
            description =
                    "Shows what a rank needs to start normal mode over NVSHMEM's IBGDA and over the library's own, by"
                            + " number of nodes: queue pairs, memory, messages. For 8 ranks per node, 4096 tokens, hidden"
                            + " size 7168, 8 experts per token, and as many experts as ranks, but at least 256.",
            mixinStandardHelpOptions = true)
    void start() {
        console.print(StartTable.markdown());
    }

    @Command(
            name = "compare",
            description =
                    "Predicts the times that DeepEP has published and those measured with this library, and shows the"
                            + " errors.",
            mixinStandardHelpOptions = true)
    void compare() {
        List<Reference> references = References.all();
        List<Reference.Outcome> outcomes = new ArrayList<>();
        try (Progress progress = Progress.of(console, "references", references.size())) {
            for (Reference reference : references) {
                progress.at(reference.source());
                outcomes.addAll(reference.predict());
                progress.step();
            }
        }
        console.print(Comparison.markdown(outcomes));
    }
}
