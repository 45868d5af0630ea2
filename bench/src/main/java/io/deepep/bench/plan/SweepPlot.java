package io.deepep.bench.plan;

import io.deepep.bench.run.OutputFile;
import io.deepep.planner.ModePlan;
import io.deepep.planner.OperationPlan;
import java.awt.Color;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.knowm.xchart.ChartEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler;

/** Predicted times over world sizes, as a PNG. */
final class SweepPlot {
    private static final int WIDTH = 900;
    private static final int HEIGHT = 560;

    private SweepPlot() {}

    /** Writes the chart: a line for each operation, both axes logarithmic. */
    static void write(Path file, List<ModePlan> plans) {
        System.setProperty("java.awt.headless", "true");
        XYChart chart =
                new XYChartBuilder()
                        .width(WIDTH)
                        .height(HEIGHT)
                        .title("Predicted time of the slowest rank")
                        .xAxisTitle("ranks")
                        .yAxisTitle("µs")
                        .build();
        chart.getStyler()
                .setXAxisLogarithmic(true)
                .setYAxisLogarithmic(true)
                .setXAxisDecimalPattern("#,###")
                .setYAxisDecimalPattern("#,###")
                .setChartBackgroundColor(Color.WHITE)
                .setLegendPosition(Styler.LegendPosition.OutsideE);
        lines(plans).forEach((name, line) -> chart.addSeries(name, line.ranks(), line.micros()));
        ByteArrayOutputStream png = new ByteArrayOutputStream();
        try {
            ChartEncoder.saveChart(chart, png, "png");
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        OutputFile.write("--plot", file, png.toByteArray());
    }

    /** The points of one operation. */
    private record Line(List<Integer> ranks, List<Double> micros) {}

    private static Map<String, Line> lines(List<ModePlan> plans) {
        Map<String, Line> lines = new LinkedHashMap<>();
        for (ModePlan plan : plans) {
            for (OperationPlan operation : plan.operations()) {
                Line line =
                        lines.computeIfAbsent(
                                plan.mode() + " " + operation.op(),
                                name -> new Line(new ArrayList<>(), new ArrayList<>()));
                line.ranks().add(plan.cluster().topology().numRanks());
                line.micros().add(operation.slowestMicros());
            }
        }
        return lines;
    }
}
