package io.deepep.bench.jmh;

import io.deepep.Bf16;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.LogFmt10;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** The host's conversions, a row of 7168 channels each, in memory that the caches hold. */
@State(Scope.Thread)
public class ConversionBenchmark extends CallBenchmark {
    private static final int HIDDEN = 7168;

    private final MemorySegment bf16 = randomRow();
    private final MemorySegment fp8 = Arena.ofAuto().allocate(HIDDEN, 64);
    private final MemorySegment scales = Arena.ofAuto().allocate(4L * HIDDEN / 128, 64);
    private final MemorySegment logarithms = Arena.ofAuto().allocate(LogFmt10.rowBytes(HIDDEN), 64);
    private final float[] sum = new float[HIDDEN];
    private final LogFmt10 logFmt = new LogFmt10();

    /** Makes a row in every format. */
    public ConversionBenchmark() {
        logFmt.encodeRow(bf16, 0, logarithms, 0, HIDDEN);
    }

    private static MemorySegment randomRow() {
        MemorySegment row = Arena.ofAuto().allocate(2L * HIDDEN, 64);
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < HIDDEN; i++) {
            short bits = Bf16.fromFloat((float) random.nextGaussian());
            row.setAtIndex(ValueLayout.JAVA_SHORT, i, bits);
        }
        return row;
    }

    /** BF16 to FP8 with a scale for 128 channels. */
    @Benchmark
    public MemorySegment castFp8() {
        RowMath.castFp8(bf16, 0, fp8, 0, scales, 0, HIDDEN, false);
        return fp8;
    }

    /** The same with scales that are powers of two, as UE8M0 has them. */
    @Benchmark
    public MemorySegment castFp8PowerOfTwo() {
        RowMath.castFp8(bf16, 0, fp8, 0, scales, 0, HIDDEN, true);
        return fp8;
    }

    /** BF16 to 10-bit logarithms. */
    @Benchmark
    public MemorySegment encodeLogFmt() {
        logFmt.encodeRow(bf16, 0, logarithms, 0, HIDDEN);
        return logarithms;
    }

    /** 10-bit logarithms added to a sum in fp32. */
    @Benchmark
    public float[] addLogFmt() {
        logFmt.addScaledRow(sum, 0.5f, logarithms, 0, HIDDEN);
        return sum;
    }

    /** BF16 added to a sum in fp32. */
    @Benchmark
    public float[] addBf16() {
        RowMath.addScaledBf16(sum, 0.5f, bf16, 0, HIDDEN);
        return sum;
    }
}
