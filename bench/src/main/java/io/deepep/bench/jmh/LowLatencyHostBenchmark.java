package io.deepep.bench.jmh;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.LowLatencyFixture;
import io.deepep.bench.run.Job;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
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
    public static class Dispatch extends HostRanks {
        /** What travels. */
        @Param({"BF16", "FP8", "FP8_UE8M0"})
        public LowLatencyFormat format;

        @Override
        Operation operation() {
            LowLatencyFixture fixture = LowLatencyFixture.open(job());
            long moved = fixture.dispatchBytes(format).moved();
            return new Operation(
                    fixture::close, fixture.team(), fixture.dispatch(format), moved, moved);
        }
    }

    /** Combines of one kind. */
    public static class Combine extends HostRanks {
        /** Where expert outputs lie, or how they travel. */
        @Param({"STAGED", "ZERO_COPY", "FP8", "LOGFMT"})
        public Kind kind;

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

        @Override
        Operation operation() {
            LowLatencyFixture fixture = LowLatencyFixture.open(job());
            CombineRows rows =
                    switch (kind) {
                        case STAGED, ZERO_COPY -> CombineRows.BF16;
                        case FP8 -> CombineRows.FP8;
                        case LOGFMT -> CombineRows.LOGFMT;
                    };
            long moved = fixture.combineBytes(rows).moved();
            return new Operation(
                    fixture::close,
                    fixture.team(),
                    fixture.combine(kind == Kind.ZERO_COPY, rows),
                    moved,
                    moved);
        }
    }

    /** One dispatch. */
    @Benchmark
    public void dispatch(Dispatch ranks) {
        ranks.run();
    }

    /** One combine. */
    @Benchmark
    public void combine(Combine ranks) {
        ranks.run();
    }
}
