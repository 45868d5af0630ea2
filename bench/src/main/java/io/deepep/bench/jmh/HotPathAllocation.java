package io.deepep.bench.jmh;

import io.deepep.DType;
import io.deepep.LowLatencyFormat;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.LowLatencyFixture;
import io.deepep.bench.normal.NormalFixture;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankTeam;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What a warmed call with a reused plan allocates on the Java heap: {@code deepep jmh
 * HotPathAllocation -prof gc}, column {@code gc.alloc.rate.norm}. Operations are calls of single
 * ranks, so the figure is bytes per {@code Buffer} call. Low-latency dispatches are not combined
 * here, so each gets a handle of its own.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 5, time = 2)
@Measurement(iterations = 3, time = 2)
@Fork(1)
public class HotPathAllocation {
    private static final int RANKS = 4;

    /** What is called. */
    public enum Call {
        /** Normal dispatch. */
        DISPATCH,
        /** Normal dispatch of FP8. */
        DISPATCH_FP8,
        /** Normal dispatch by handle. */
        DISPATCH_CACHED,
        /** Normal combine with staging. */
        COMBINE_STAGED,
        /** Normal combine in place. */
        COMBINE_ZERO_COPY,
        /** Low-latency dispatch of BF16. */
        LL_DISPATCH,
        /** Low-latency dispatch with the cast to FP8. */
        LL_DISPATCH_FP8,
        /** Low-latency combine. */
        LL_COMBINE
    }

    /** Ranks that stay alive between invocations. */
    @State(Scope.Benchmark)
    public static class Ranks {
        /** The call. */
        @Param public Call call;

        private AutoCloseable fixture;
        private RankTeam team;
        private RankTeam.Work work;

        /** Opens the buffers and verifies. */
        @Setup
        public void open() {
            Job job = Job.onHost(RANKS, 32, 1024, 32, 4);
            if (call.name().startsWith("LL")) {
                LowLatencyFixture ready = LowLatencyFixture.open(job);
                fixture = ready;
                team = ready.team();
                work = lowLatency(ready);
            } else {
                NormalFixture ready = NormalFixture.open(job);
                fixture = ready;
                team = ready.team();
                work = normal(ready);
            }
        }

        private RankTeam.Work normal(NormalFixture ready) {
            return switch (call) {
                case DISPATCH -> ready.dispatch(DType.BF16);
                case DISPATCH_FP8 -> ready.dispatch(DType.FP8_E4M3);
                case DISPATCH_CACHED -> ready.cachedDispatch();
                case COMBINE_STAGED -> ready.combine(false);
                case COMBINE_ZERO_COPY -> ready.combine(true);
                default -> throw new IllegalStateException(call + " is not normal mode");
            };
        }

        private RankTeam.Work lowLatency(LowLatencyFixture ready) {
            return switch (call) {
                case LL_DISPATCH -> ready.dispatch(LowLatencyFormat.BF16);
                case LL_DISPATCH_FP8 -> ready.dispatch(LowLatencyFormat.FP8);
                case LL_COMBINE -> ready.combine(false, CombineRows.BF16);
                default -> throw new IllegalStateException(call + " is not low-latency mode");
            };
        }

        /** Closes the buffers. */
        @TearDown
        public void close() throws Exception {
            fixture.close();
        }
    }

    /** The call, on every rank. */
    @Benchmark
    @OperationsPerInvocation(RANKS)
    public void call(Ranks ranks) {
        ranks.team.run(ranks.work);
    }
}
