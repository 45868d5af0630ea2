/**
 * Records of runs as pages, plots and tables: {@code deepep report}. What a bench wrote with {@code
 * --json} and {@code --jfr} goes in; {@link io.deepep.bench.report.ReportCommand} is the way in.
 */
package io.deepep.bench.report;
