package io.deepep.bench.plan;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.run.OutputFile;
import io.deepep.planner.ModePlan;
import io.deepep.planner.OperationPlan;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Predicted times over world sizes, as an SVG. */
final class SweepPlot {
    private SweepPlot() {}

    /** Writes the chart: a line for each operation, both axes logarithmic. */
    static void write(Path file, List<ModePlan> plans) {
        Map<String, TreeMap<Integer, Double>> micros = new LinkedHashMap<>();
        for (ModePlan plan : plans) {
            for (OperationPlan operation : plan.operations()) {
                micros.computeIfAbsent(plan.mode() + " " + operation.op(), name -> new TreeMap<>())
                        .put(plan.cluster().topology().numRanks(), operation.slowestMicros());
            }
        }
        Map<String, Charts.Line> lines = new LinkedHashMap<>();
        micros.forEach((name, points) -> lines.put(name, line(points)));
        String svg = Charts.lines("Predicted time of the slowest rank", "ranks", "µs", lines);
        OutputFile.write("--plot", file, svg);
    }

    private static Charts.Line line(Map<Integer, Double> points) {
        return new Charts.Line(
                points.keySet().stream().map(Integer::doubleValue).toList(),
                List.copyOf(points.values()));
    }
}
