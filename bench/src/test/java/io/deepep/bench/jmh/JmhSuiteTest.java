package io.deepep.bench.jmh;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collection;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** The small benchmarks run. Each does so once, so the figures mean nothing. */
class JmhSuiteTest {
    @Test
    void smallBenchmarksRun() throws Exception {
        Collection<RunResult> results =
                new Runner(
                                new OptionsBuilder()
                                        .include("\\.BufferCallBenchmark\\.")
                                        .include("\\.ConversionBenchmark\\.")
                                        .include("\\.ForeignCallBenchmark\\.")
                                        .mode(Mode.SingleShotTime)
                                        .forks(0)
                                        .warmupIterations(0)
                                        .measurementIterations(1)
                                        .measurementTime(TimeValue.milliseconds(1))
                                        .shouldFailOnError(true)
                                        .verbosity(VerboseMode.SILENT)
                                        .build())
                        .run();
        assertThat(results)
                .extracting(result -> result.getParams().getBenchmark())
                .hasSize(3 * 2 + 5 + 2);
    }
}
