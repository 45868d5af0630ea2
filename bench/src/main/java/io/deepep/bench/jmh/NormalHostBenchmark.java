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
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
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
    /** Dispatch with top-k, received as a view. */
    public static class Dispatch extends HostRanks {
        @Override
        Operation operation() {
            NormalFixture fixture = fixture();
            // Every received row is read at its source and written.
            long moved = 2 * bytes(fixture).logical();
            return measured(fixture, fixture.dispatch(DType.BF16), moved);
        }
    }

    /** Combine of rows that lie in the buffer. */
    public static class CombineZeroCopy extends HostRanks {
        @Override
        Operation operation() {
            NormalFixture fixture = fixture();
            // Every row is read once, every sum written.
            return measured(fixture, fixture.combine(true), bytes(fixture).moved());
        }
    }

    /** Combine of rows that are staged first. */
    public static class CombineStaged extends HostRanks {
        @Override
        Operation operation() {
            NormalFixture fixture = fixture();
            // As in place, and every row is first copied into the buffer.
            long moved = bytes(fixture).moved() + 2 * bytes(fixture).logical();
            return measured(fixture, fixture.combine(false), moved);
        }
    }

    private static NormalFixture fixture() {
        return NormalFixture.open(Job.onHost(8, 1024, 7168, 256, 8));
    }

    private static OperationBytes bytes(NormalFixture fixture) {
        return fixture.bytes(DType.BF16);
    }

    private static HostRanks.Operation measured(
            NormalFixture fixture, RankTeam.Work work, long movedBytes) {
        return new HostRanks.Operation(
                fixture::close, fixture.team(), work, movedBytes, bytes(fixture).moved());
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
