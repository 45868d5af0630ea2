package io.deepep.bench.chart;

import java.util.Locale;

/** A picture as text: shapes in the order in which they are drawn. */
final class Svg {
    static final String INK = "#1a202c";
    static final String SOFT = "#4a5568";
    static final String GRID = "#e2e8f0";

    /** Where a text begins, has its middle or ends. */
    enum Anchor {
        START,
        MIDDLE,
        END
    }

    private final StringBuilder shapes = new StringBuilder();
    private final int width;
    private final int height;
    private final String title;

    /**
     * An empty picture on white.
     *
     * @param title what it shows, for those who do not see it
     */
    Svg(int width, int height, String title) {
        this.width = width;
        this.height = height;
        this.title = title;
        rect(0, 0, width, height, "#ffffff", "");
        text(16, 28, Anchor.START, 17, true, INK, title);
    }

    /** A filled rectangle; {@code tip} is shown where a pointer rests on it. */
    void rect(double x, double y, double w, double h, String fill, String tip) {
        shapes.append(
                String.format(
                        Locale.ROOT,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">",
                        x,
                        y,
                        Math.max(0, w),
                        Math.max(0, h),
                        fill));
        shapes.append(tip.isEmpty() ? "" : "<title>" + escaped(tip) + "</title>");
        shapes.append("</rect>\n");
    }

    void line(double x1, double y1, double x2, double y2, String stroke, boolean dashed) {
        shapes.append(
                String.format(
                        Locale.ROOT,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s/>%n",
                        x1,
                        y1,
                        x2,
                        y2,
                        stroke,
                        dashed ? " stroke-width=\"2\" stroke-dasharray=\"6 4\"" : ""));
    }

    /** A line through points, with a dot on each. */
    void path(double[] xs, double[] ys, String stroke) {
        StringBuilder points = new StringBuilder();
        for (int i = 0; i < xs.length; i++) {
            points.append(String.format(Locale.ROOT, "%.1f,%.1f ", xs[i], ys[i]));
            rect(xs[i] - 3, ys[i] - 3, 6, 6, stroke, "");
        }
        shapes.append("<polyline points=\"")
                .append(points.toString().strip())
                .append("\" fill=\"none\" stroke-width=\"2\" stroke=\"")
                .append(stroke)
                .append("\"/>\n");
    }

    void text(double x, double y, Anchor anchor, int size, boolean bold, String fill, String text) {
        shapes.append(
                String.format(
                        Locale.ROOT,
                        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s fill=\"%s\">%s</text>%n",
                        x,
                        y,
                        anchor.name().toLowerCase(Locale.ROOT),
                        size,
                        bold ? " font-weight=\"600\"" : "",
                        fill,
                        escaped(text)));
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    /** The file. */
    @Override
    public String toString() {
        return String.format(
                        Locale.ROOT,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\""
                                + " role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">%n",
                        width,
                        height,
                        width,
                        height)
                + "<title>"
                + escaped(title)
                + "</title>\n"
                + shapes
                + "</svg>\n";
    }
}
