package io.deepep.bench.jmh;

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

    /** Ranks that stay alive between invocations. */
    @State(Scope.Benchmark)
    public static class Ranks {
        /** What is called. */
        @Param public HostCall call;

        private HostCall.Ready ready;
        private RankTeam.Work work;

        /** Opens the buffers and verifies. */
        @Setup
        public void open() {
            ready = call.open(Job.onHost(RANKS, 32, 1024, 32, 4));
            work = ready.call().operation().synchronous();
        }

        /** Closes the buffers. */
        @TearDown
        public void close() throws Exception {
            ready.buffers().close();
        }
    }

    /** The call, on every rank. */
    @Benchmark
    @OperationsPerInvocation(RANKS)
    public void call(Ranks ranks) {
        ranks.ready.team().run(ranks.work);
    }
}
