package io.deepep.bench.plan;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.run.OutputFile;
import io.deepep.planner.ModePlan;
import io.deepep.planner.OperationPlan;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Predicted times over world sizes, as an SVG. */
final class SweepPlot {
    private SweepPlot() {}

    /**
     * Writes the chart: a line for each operation, both axes logarithmic.
     *
     * @param plans of each mode, the smaller worlds first
     */
    static void write(Path file, List<ModePlan> plans) {
        Map<String, Charts.Line> lines = new LinkedHashMap<>();
        for (ModePlan plan : plans) {
            for (OperationPlan operation : plan.operations()) {
                lines.computeIfAbsent(plan.mode() + " " + operation.op(), name -> new Charts.Line())
                        .add(plan.cluster().topology().numRanks(), operation.slowestMicros());
            }
        }
        String svg = Charts.lines("Predicted time of the slowest rank", "ranks", "µs", lines);
        OutputFile.write("--plot", file, svg);
    }
}
