package io.deepep.bench.report;

import java.awt.Color;
import java.awt.Font;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.knowm.xchart.ChartEncoder;
import org.knowm.xchart.HeatMapChart;
import org.knowm.xchart.HeatMapChartBuilder;
import org.knowm.xchart.HorizontalBarChart;
import org.knowm.xchart.HorizontalBarChartBuilder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.internal.chartpart.Chart;
import org.knowm.xchart.style.AxesChartStyler;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Draws PNGs. The only class besides the planner's that needs {@code java.desktop}. */
final class Charts {
    private static final int WIDTH = 900;
    private static final int BAR_HEIGHT = 34;
    private static final int FRAME_HEIGHT = 130;
    private static final int SQUARE = 640;
    private static final Color BAR = new Color(0x2b6cb0);
    private static final Color PAPER = Color.WHITE;
    private static final Color INK = new Color(0x1a202c);
    private static final Color GRID = new Color(0xe2e8f0);

    /** From nothing to much, so that dark ink stays readable on all of them. */
    private static final Color[] HEAT = {
        new Color(0xf7fafc), new Color(0xfed7aa), new Color(0xfb923c), new Color(0xf05252)
    };

    private static final Font TEXT = new Font(Font.SANS_SERIF, Font.PLAIN, 13);
    private static final Font TITLE = new Font(Font.SANS_SERIF, Font.BOLD, 16);

    private Charts() {}

    static {
        System.setProperty("java.awt.headless", "true");
    }

    /** A bar for each name, the first on top; its value is written beside the name. */
    static byte[] bars(String title, String unit, List<String> names, List<Double> values) {
        HorizontalBarChart chart =
                new HorizontalBarChartBuilder()
                        .width(WIDTH)
                        .height(FRAME_HEIGHT + BAR_HEIGHT * names.size())
                        .title(title)
                        .xAxisTitle(unit)
                        .build();
        style(chart.getStyler());
        chart.getStyler()
                .setAvailableSpaceFill(0.7)
                .setXAxisMin(0.0)
                .setXAxisDecimalPattern("#,###.#")
                // Also how far apart the names must be to be shown.
                .setXAxisTickMarkSpacingHint(BAR_HEIGHT - 4);
        chart.getStyler().setSeriesColors(new Color[] {BAR}).setLegendVisible(false);
        List<String> labels = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            labels.add(names.get(i) + "   " + threeDigits(values.get(i)));
        }
        chart.addSeries("value", values, labels);
        return png(chart);
    }

    /** Values over an index from 0 on, as the load of experts. */
    static byte[] steps(String title, String xTitle, String yTitle, long[] values) {
        XYChart chart =
                new XYChartBuilder()
                        .width(WIDTH)
                        .height(360)
                        .title(title)
                        .xAxisTitle(xTitle)
                        .yAxisTitle(yTitle)
                        .build();
        style(chart.getStyler());
        chart.getStyler()
                .setDefaultSeriesRenderStyle(XYSeries.XYSeriesRenderStyle.StepArea)
                .setXAxisDecimalPattern("#,###")
                .setYAxisMin(0.0)
                .setYAxisDecimalPattern("#,###");
        chart.getStyler().setSeriesColors(new Color[] {BAR}).setLegendVisible(false);
        // A step lasts until the next index, the last one too.
        int size = values.length;
        chart.addSeries(
                        yTitle,
                        IntStream.rangeClosed(0, size).asDoubleStream().toArray(),
                        IntStream.rangeClosed(0, size)
                                .mapToDouble(i -> values[Math.min(i, size - 1)])
                                .toArray())
                .setMarker(SeriesMarkers.NONE);
        return png(chart);
    }

    /**
     * A square of numbers, written into its cells as far as there is room.
     *
     * @param values [row][column]; rows are drawn from top to bottom
     */
    static byte[] heatMap(String title, String rowTitle, String columnTitle, double[][] values) {
        int size = values.length;
        HeatMapChart chart =
                new HeatMapChartBuilder()
                        .width(SQUARE + 90)
                        .height(SQUARE)
                        .title(title)
                        .xAxisTitle(columnTitle)
                        .yAxisTitle(rowTitle)
                        .build();
        style(chart.getStyler());
        double most = Arrays.stream(values).flatMapToDouble(Arrays::stream).max().orElse(0);
        chart.getStyler()
                .setRangeColors(HEAT)
                .setShowValue(size <= 16)
                .setValueFont(size <= 8 ? TEXT : TEXT.deriveFont(10f))
                .setValueFontColor(INK)
                .setHeatMapValueDecimalPattern("#,##0" + decimals(most))
                .setDrawBorder(true)
                .setMin(0)
                .setMax(roundedUp(most))
                .setPlotContentSize(1);
        List<Number[]> cells = new ArrayList<>();
        for (int row = 0; row < size; row++) {
            for (int column = 0; column < size; column++) {
                // From bottom to top, so rows are given in reverse.
                cells.add(new Number[] {column, size - 1 - row, values[row][column]});
            }
        }
        List<Integer> ranks = IntStream.range(0, size).boxed().toList();
        chart.addSeries(title, ranks, reversed(ranks), cells);
        return png(chart);
    }

    /** Digits after the point that leave three in all. */
    private static int digits(double value) {
        return value == 0 ? 0 : Math.clamp(2 - (int) Math.floor(Math.log10(Math.abs(value))), 0, 6);
    }

    private static String threeDigits(double value) {
        return String.format(Locale.ROOT, "%,." + digits(value) + "f", value);
    }

    private static String decimals(double most) {
        return digits(most) == 0 ? "" : "." + "0".repeat(digits(most));
    }

    /** To two digits; not 0, which is no end of a scale. */
    private static double roundedUp(double most) {
        return most <= 0
                ? 1
                : new BigDecimal(most).round(new MathContext(2, RoundingMode.UP)).doubleValue();
    }

    private static void style(Styler styler) {
        styler.setBaseFont(TEXT);
        styler.setChartBackgroundColor(PAPER)
                .setPlotBackgroundColor(PAPER)
                .setChartFontColor(INK)
                .setChartTitleFont(TITLE)
                .setPlotBorderVisible(false)
                .setLegendFont(TEXT)
                .setLegendBorderColor(PAPER)
                .setChartPadding(12);
        if (styler instanceof AxesChartStyler axes) {
            axes.setPlotGridLinesColor(GRID)
                    .setAxisTickLabelsColor(INK)
                    .setAxisTickLabelsFont(TEXT)
                    .setAxisTitleFont(TEXT)
                    .setAxisTickMarksColor(GRID);
        }
    }

    private static <T> List<T> reversed(List<T> list) {
        List<T> copy = new ArrayList<>(list);
        Collections.reverse(copy);
        return copy;
    }

    private static byte[] png(Chart<?, ?> chart) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            ChartEncoder.saveChart(chart, bytes, "png");
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }
}
