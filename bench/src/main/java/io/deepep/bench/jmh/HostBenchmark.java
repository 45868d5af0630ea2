package io.deepep.bench.jmh;

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
 * Both modes on the host, 8 ranks with hidden size 7168 and top-8 of 256. One invocation is one
 * collective operation; its share of the memory-copy bandwidth of the same moment is printed after
 * each iteration.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
@Fork(1)
public class HostBenchmark {
    /** Ranks with 1024 tokens each. */
    public static class NormalRanks extends HostRanks {
        /** What is called. */
        @Param({"DISPATCH", "COMBINE_ZERO_COPY", "COMBINE_STAGED"})
        public HostCall call;

        @Override
        HostCall.Ready ready() {
            return call.open(Job.onHost(8, 1024, 7168, 256, 8));
        }
    }

    /** Ranks with 32 tokens each. */
    public static class LowLatencyRanks extends HostRanks {
        /** What is called. */
        @Param({
            "LL_DISPATCH",
            "LL_DISPATCH_FP8",
            "LL_DISPATCH_FP8_UE8M0",
            "LL_COMBINE_STAGED",
            "LL_COMBINE_ZERO_COPY",
            "LL_COMBINE_FP8",
            "LL_COMBINE_LOGFMT"
        })
        public HostCall call;

        @Override
        HostCall.Ready ready() {
            return call.open(Job.onHost(8, 32, 7168, 256, 8));
        }
    }

    /** A call of normal mode. */
    @Benchmark
    public void normal(NormalRanks ranks) {
        ranks.run();
    }

    /** A call of low-latency mode. */
    @Benchmark
    public void lowLatency(LowLatencyRanks ranks) {
        ranks.run();
    }
}
