package io.deepep.bench.jmh;

import io.deepep.DType;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.normal.NormalFixture;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankTeam;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Normal mode on the host: 8 ranks x 1024 tokens x 7168 BF16, top-8 of 256. One invocation is one
 * collective operation; its share of the memory-copy bandwidth of the same moment is printed after
 * each iteration.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
@Fork(1)
public class NormalHostBenchmark {
    /** Ranks that stay alive between invocations. */
    @State(Scope.Benchmark)
    public abstract static class Ranks {
        private NormalFixture fixture;
        private MeasuredOperation operation;

        /** What is measured. */
        abstract RankTeam.Work operation(NormalFixture ready);

        /** Bytes it reads and writes, from those of all received rows and of all tokens. */
        abstract long bytesMoved(long received, long tokens);

        /** Opens the buffers, verifies, and measures the copy bandwidth. */
        @Setup
        public void open() {
            fixture = NormalFixture.open(Job.onHost(8, 1024, 7168, 256, 8));
            OperationBytes bytes = fixture.bytes(DType.BF16);
            long received = bytes.logical();
            long tokens = bytes.moved() - received;
            operation =
                    new MeasuredOperation(
                            fixture.team(),
                            operation(fixture),
                            bytesMoved(received, tokens),
                            bytes.moved());
        }

        void run() {
            operation.run();
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

    /** Dispatch with top-k, received as a view. */
    public static class Dispatch extends Ranks {
        @Override
        RankTeam.Work operation(NormalFixture ready) {
            return ready.dispatch(DType.BF16);
        }

        @Override
        long bytesMoved(long received, long tokens) {
            // Every received row is read at its source and written.
            return 2 * received;
        }
    }

    /** Combine of rows that lie in the buffer. */
    public static class CombineZeroCopy extends Ranks {
        @Override
        RankTeam.Work operation(NormalFixture ready) {
            return ready.combine(true);
        }

        @Override
        long bytesMoved(long received, long tokens) {
            // Every row is read once, every sum written.
            return received + tokens;
        }
    }

    /** Combine of rows that are staged first. */
    public static class CombineStaged extends Ranks {
        @Override
        RankTeam.Work operation(NormalFixture ready) {
            return ready.combine(false);
        }

        @Override
        long bytesMoved(long received, long tokens) {
            // As in place, and every row is first copied into the buffer.
            return 3 * received + tokens;
        }
    }

    /** One dispatch. */
    @Benchmark
    public void dispatch(Dispatch ranks) {
        ranks.run();
    }

    /** One combine in place. */
    @Benchmark
    public void combineZeroCopy(CombineZeroCopy ranks) {
        ranks.run();
    }

    /** One combine with staging. */
    @Benchmark
    public void combineStaged(CombineStaged ranks) {
        ranks.run();
    }
}
