package io.deepep.bench.jmh;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.LowLatencyFixture;
import io.deepep.bench.run.Job;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Low-latency mode on the host: 8 ranks x 32 tokens x 7168, top-8 of 256. One invocation is one
 * collective operation.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(1)
public class LowLatencyHostBenchmark {
    private static Job job() {
        return Job.onHost(8, 32, 7168, 256, 8);
    }

    /** Dispatches in one format. */
    @State(Scope.Benchmark)
    public static class Dispatch {
        /** What travels. */
        @Param({"BF16", "FP8", "FP8_UE8M0"})
        public LowLatencyFormat format;

        private LowLatencyFixture fixture;
        private MeasuredOperation operation;

        /** Opens the buffers, verifies, and measures the copy bandwidth. */
        @Setup
        public void open() {
            fixture = LowLatencyFixture.open(job());
            operation =
                    new MeasuredOperation(
                            fixture.team(),
                            fixture.dispatch(format),
                            fixture.dispatchBytes(format).moved(),
                            fixture.dispatchBytes(format).moved());
        }

        /** Prints the share of the iteration. */
        @TearDown(Level.Iteration)
        public void report() {
            System.out.print("[" + operation.report() + "] ");
        }

        /** Closes the buffers. */
        @TearDown
        public void close() {
            fixture.close();
        }
    }

    /** Combines of one kind. */
    @State(Scope.Benchmark)
    public static class Combine {
        /** Where expert outputs lie, or how they travel. */
        @Param({"STAGED", "ZERO_COPY", "FP8", "LOGFMT"})
        public Kind kind;

        private LowLatencyFixture fixture;
        private MeasuredOperation operation;

        /** Kinds of combines. */
        public enum Kind {
            /** From memory of the caller. */
            STAGED,
            /** From the buffer's combine memory. */
            ZERO_COPY,
            /** As FP8. */
            FP8,
            /** As 10-bit logarithms. */
            LOGFMT
        }

        /** Opens the buffers, verifies, and measures the copy bandwidth. */
        @Setup
        public void open() {
            fixture = LowLatencyFixture.open(job());
            CombineRows rows =
                    switch (kind) {
                        case STAGED, ZERO_COPY -> CombineRows.BF16;
                        case FP8 -> CombineRows.FP8;
                        case LOGFMT -> CombineRows.LOGFMT;
                    };
            operation =
                    new MeasuredOperation(
                            fixture.team(),
                            fixture.combine(kind == Kind.ZERO_COPY, rows),
                            fixture.combineBytes(rows).moved(),
                            fixture.combineBytes(rows).moved());
        }

        /** Prints the share of the iteration. */
        @TearDown(Level.Iteration)
        public void report() {
            System.out.print("[" + operation.report() + "] ");
        }

        /** Closes the buffers. */
        @TearDown
        public void close() {
            fixture.close();
        }
    }

    /** One dispatch. */
    @Benchmark
    public void dispatch(Dispatch ranks) {
        ranks.operation.run();
    }

    /** One combine. */
    @Benchmark
    public void combine(Combine ranks) {
        ranks.operation.run();
    }
}
