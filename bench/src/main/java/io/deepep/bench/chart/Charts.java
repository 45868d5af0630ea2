package io.deepep.bench.chart;

import io.deepep.bench.chart.Svg.Anchor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.IntStream;

/** Draws SVGs. */
public final class Charts {
    private static final int WIDTH = 860;
    private static final int HEAD = 44;
    private static final int FOOT = 46;
    private static final int BAR = 32;
    private static final int TEXT = 14;
    private static final double LETTER = 7.6;
    private static final int STEPS = 8;
    private static final int MOST_NUMBERED_CELLS = 16;
    private static final int NUM_HOTTEST = 3;

    /**
     * More cells in a row, or bars, are hardly seen, and make files of many megabytes. The 72 ranks
     * of a rack have a cell each.
     */
    private static final int MOST_CELLS = 72;

    private static final int MOST_BARS = 1024;
    private static final String BLUE = "#2b6cb0";
    private static final String RED = "#c53030";
    private static final List<String> LINES =
            List.of(BLUE, RED, "#2f855a", "#b7791f", "#6b46c1", "#2c7a7b");

    private Charts() {}

    /**
     * A bar for each name, the first on top, with its value at its end.
     *
     * @param ceiling where a dashed line marks what is possible; the axis reaches it
     */
    public static String bars(
            String title,
            String unit,
            List<String> names,
            List<Double> values,
            OptionalDouble ceiling) {
        int height = HEAD + BAR * names.size() + FOOT;
        Svg svg = new Svg(WIDTH, height, title);
        int longest = names.stream().mapToInt(String::length).max().orElse(0);
        double left = Math.min(24 + LETTER * longest, WIDTH / 2.0);
        double most = values.stream().mapToDouble(Double::doubleValue).max().orElse(0);
        Scale x = Scale.upTo(Math.max(most, ceiling.orElse(0)), STEPS, left, WIDTH - 84.0);
        double bottom = (double) height - FOOT;
        gridOfX(svg, x, HEAD, bottom);
        svg.text((left + WIDTH - 84) / 2, bottom + 38, Anchor.MIDDLE, TEXT, false, Svg.INK, unit);
        ceiling.ifPresent(
                limit -> svg.line(x.at(limit), HEAD - 6.0, x.at(limit), bottom, RED, true));
        for (int i = 0; i < names.size(); i++) {
            double top = HEAD + BAR * i + 5.0;
            double value = values.get(i);
            String shown = Scale.number(value);
            svg.text(left - 10, top + 16, Anchor.END, TEXT, false, Svg.INK, names.get(i));
            svg.rect(left, top, x.at(value) - left, BAR - 10.0, BLUE, names.get(i) + ": " + shown);
            // Over grid and ceiling.
            svg.rect(x.at(value) + 4, top + 2, 8 + 9.0 * shown.length(), BAR - 14.0, "#ffffff", "");
            svg.text(x.at(value) + 8, top + 16, Anchor.START, TEXT, true, Svg.INK, shown);
        }
        return svg.toString();
    }

    private static void gridOfX(Svg svg, Scale x, double top, double bottom) {
        for (double tick : x.ticks()) {
            double at = x.at(tick);
            svg.line(at, top, at, bottom, Svg.GRID, false);
            svg.text(at, bottom + 18, Anchor.MIDDLE, 12, false, Svg.SOFT, Scale.number(tick));
        }
    }

    private static void gridOfY(Svg svg, Scale y, double left, double right) {
        for (double tick : y.ticks()) {
            double at = y.at(tick);
            svg.line(left, at, right, at, Svg.GRID, false);
            svg.text(left - 8, at + 4, Anchor.END, 12, false, Svg.SOFT, Scale.number(tick));
        }
    }

    /**
     * A bar for each index from 0 on, as the load of experts, or for several where there are many;
     * the highest have their numbers.
     */
    public static String loads(String title, String what, String unit, long[] values) {
        int height = 360;
        Svg svg = new Svg(WIDTH, height, title);
        double bottom = height - FOOT - 8.0;
        double left = 76;
        double right = WIDTH - 24.0;
        double mean = Arrays.stream(values).average().orElse(0);
        double most = Arrays.stream(values).asDoubleStream().max().orElse(0);
        Scale y = Scale.upTo(most, 6, bottom, HEAD + 22.0);
        gridOfY(svg, y, left, right);
        int block = Math.max(1, Math.ceilDiv(values.length, MOST_BARS));
        int bars = Math.ceilDiv(values.length, block);
        double step = (right - left) / bars;
        int apart = Math.max(1, (int) Math.ceil(30 / step));
        List<Integer> hottest =
                IntStream.range(0, values.length)
                        .boxed()
                        .sorted(Comparator.comparingLong((Integer i) -> -values[i]))
                        .limit(NUM_HOTTEST)
                        .filter(i -> values[i] > mean)
                        .toList();
        for (int i = 0; i < bars; i++) {
            int bar = i;
            int end = Math.min((i + 1) * block, values.length);
            long value = Arrays.stream(values, i * block, end).max().orElseThrow();
            double top = y.at((double) value);
            String fill = hottest.stream().anyMatch(hot -> hot / block == bar) ? RED : BLUE;
            String tip = what + " " + span(i, block, values.length) + ": " + value + " " + unit;
            svg.rect(left + step * i, top, step * 0.86, bottom - top, fill, tip);
            if (i % apart == 0) {
                double middle = left + step * (i + 0.43);
                svg.text(middle, bottom + 17, Anchor.MIDDLE, 12, false, Svg.SOFT, "" + i * block);
            }
        }
        if (!hottest.isEmpty()) {
            int first = hottest.getFirst();
            int bar = first / block;
            double middle = Math.clamp(left + step * (bar + 0.43), left + 70, right - 70);
            String label = what + " " + first + ": " + Scale.number(most);
            svg.text(middle, y.at(most) - 7, Anchor.MIDDLE, 13, true, RED, label);
        }
        svg.line(left, y.at(mean), right, y.at(mean), Svg.INK, true);
        String drawn =
                (block == 1 ? "" : "each bar: the most of " + block + " neighbours; ")
                        + "dashed: the mean, "
                        + Scale.number(mean);
        svg.text(right, HEAD - 16.0, Anchor.END, 13, false, Svg.INK, drawn);
        svg.text((left + right) / 2, bottom + 40, Anchor.MIDDLE, TEXT, false, Svg.INK, what);
        svg.text(16, HEAD + 4.0, Anchor.START, 13, false, Svg.INK, unit);
        return svg.toString();
    }

    /**
     * A square of numbers, written into its cells as far as there is room. Where there are many, a
     * cell shows the largest of neighbours, and the plot says so.
     *
     * @param values [row][column]; rows are drawn from top to bottom
     */
    public static String heatMap(
            String title, String rowTitle, String columnTitle, double[][] values) {
        int block = Math.max(1, Math.ceilDiv(values.length, MOST_CELLS));
        int size = Math.ceilDiv(values.length, block);
        double cell = Math.clamp(640.0 / Math.max(1, size), 12, 88);
        double left = 96;
        double top = HEAD + 44.0;
        int width = Math.max(520, (int) (left + cell * size + 24));
        Svg svg = new Svg(width, (int) (top + cell * size + 24), title);
        if (block > 1) {
            String drawn = "each cell: the largest of %s x %s".formatted(block, block);
            svg.text(left, top + cell * size + 17, Anchor.START, 13, false, Svg.INK, drawn);
        }
        double most = Arrays.stream(values).flatMapToDouble(Arrays::stream).max().orElse(0);
        int apart = (int) Math.ceil(20 / cell);
        for (int i = 0; i < size; i++) {
            double middle = cell * (i + 0.5);
            if (i % apart == 0) {
                String first = "" + i * block;
                svg.text(left + middle, top - 8, Anchor.MIDDLE, 12, false, Svg.SOFT, first);
                svg.text(left - 8, top + middle + 4, Anchor.END, 12, false, Svg.SOFT, first);
            }
            for (int j = 0; j < size; j++) {
                double value = largest(values, i * block, j * block, block);
                String shown = Scale.number(value);
                String row = rowTitle + " " + span(i, block, values.length);
                String column = columnTitle + " " + span(j, block, values.length);
                String tip = row + ", " + column + ": " + shown;
                double x = left + cell * j;
                double y = top + cell * i;
                svg.rect(x, y, cell - 1, cell - 1, heat(most > 0 ? value / most : 0), tip);
                if (size <= MOST_NUMBERED_CELLS) {
                    int font = size <= 8 ? 13 : 10;
                    svg.text(
                            x + cell / 2,
                            y + cell / 2 + 4,
                            Anchor.MIDDLE,
                            font,
                            false,
                            Svg.INK,
                            shown);
                }
            }
        }
        svg.text(left, top - 28, Anchor.START, 13, true, Svg.INK, columnTitle + " →");
        svg.text(16, top - 8, Anchor.START, 13, true, Svg.INK, rowTitle + " ↓");
        return svg.toString();
    }

    private static double largest(double[][] values, int row, int column, int block) {
        return Arrays.stream(values, row, Math.min(row + block, values.length))
                .flatMapToDouble(
                        each ->
                                Arrays.stream(
                                        each, column, Math.min(column + block, values.length)))
                .max()
                .orElseThrow();
    }

    /** The indices behind bar or cell {@code i}. */
    private static String span(int i, int block, int length) {
        int first = i * block;
        int last = Math.min(first + block, length) - 1;
        return first == last ? "" + first : first + " to " + last;
    }

    /** From nothing to much, so light that ink stays readable on all of them. */
    private static String heat(double share) {
        int red = (int) Math.round(247 - 4 * share);
        int green = (int) Math.round(250 - 125 * share);
        int blue = (int) Math.round(252 - 162 * share);
        return String.format("#%02x%02x%02x", red, green, blue);
    }

    /** Points of one line. */
    public record Line(List<Double> xs, List<Double> ys) {
        /** None yet. */
        public Line() {
            this(new ArrayList<>(), new ArrayList<>());
        }

        /** Adds a point, unless logarithmic axes have no place for it. */
        public void add(double x, double y) {
            if (isOnAxis(x) && isOnAxis(y)) {
                xs.add(x);
                ys.add(y);
            }
        }

        private static boolean isOnAxis(double value) {
            return value > 0 && Double.isFinite(value);
        }
    }

    /** Lines over an axis of powers of two, with values on one of powers of ten. */
    public static String lines(
            String title, String xTitle, String yTitle, Map<String, Line> lines) {
        int rows = (lines.size() + 1) / 2;
        double top = HEAD + 22.0 * rows + 22;
        int height = (int) top + 420;
        Svg svg = new Svg(WIDTH, height, title);
        double bottom = (double) height - FOOT;
        double left = 76;
        double right = WIDTH - 24.0;
        Scale x = over(lines, true, 2, left, right);
        Scale y = over(lines, false, 10, bottom, top);
        gridOfX(svg, x, top, bottom);
        gridOfY(svg, y, left, right);
        int number = 0;
        for (Map.Entry<String, Line> each : lines.entrySet()) {
            String stroke = LINES.get(number % LINES.size());
            double legendX = 20 + number % 2 * (WIDTH / 2.0);
            int row = number / 2;
            double legendY = HEAD + 22.0 * row;
            svg.rect(legendX, legendY, 14, 14, stroke, "");
            svg.text(legendX + 20, legendY + 12, Anchor.START, 13, false, Svg.INK, each.getKey());
            svg.path(
                    each.getValue().xs().stream().mapToDouble(x::at).toArray(),
                    each.getValue().ys().stream().mapToDouble(y::at).toArray(),
                    stroke);
            number++;
        }
        svg.text((left + right) / 2, bottom + 38, Anchor.MIDDLE, TEXT, false, Svg.INK, xTitle);
        svg.text(16, top - 10, Anchor.START, 13, false, Svg.INK, yTitle);
        return svg.toString();
    }

    private static Scale over(
            Map<String, Line> lines, boolean horizontal, int base, double from, double to) {
        double[] all =
                lines.values().stream()
                        .flatMap(line -> (horizontal ? line.xs() : line.ys()).stream())
                        .mapToDouble(Double::doubleValue)
                        .toArray();
        return Scale.logarithmic(
                Arrays.stream(all).min().orElse(1),
                Arrays.stream(all).max().orElse(1),
                base,
                from,
                to);
    }
}
