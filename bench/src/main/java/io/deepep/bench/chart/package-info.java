/** Charts as SVG: one style for reports, plans and pages, and no need of {@code java.desktop}. */
package io.deepep.bench.chart;
