package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * One rank's side of {@code bench_soak.cu}: writes the inputs of an exchange and compares its
 * results, all on the GPU and in the order of the rank's stream.
 */
public final class SoakKernel {
    private static final int BLOCKS = 8;
    private static final int ERROR_WORDS = 8;
    private static final int PREPARE = 0;
    private static final int CHECK_DISPATCH = 1;
    private static final int CHECK_COMBINE = 2;
    private static final String[] WHATS = {
        "", "range of rows", "source of a row", "row", "number of rows", "sum"
    };

    private final CudaStream stream;
    private final BenchModule module;
    private final Params params;
    private final LaunchConfig launch;

    /** Mapped, so that complaints need no copy. */
    private final PinnedMemory errors;

    /**
     * The soak of one rank; while no kernel of its GPU waits for another rank.
     *
     * @param stream that the rank's operations run on
     * @param x BF16 [maxTokens, H]
     * @param topkIdx I64 [maxTokens, K]
     * @param topkWeights F32 [maxTokens, K]
     */
    public SoakKernel(
            CudaStream stream,
            int rank,
            int numRanks,
            LowLatencyLimits limits,
            Tensor x,
            Tensor topkIdx,
            Tensor topkWeights) {
        CudaContext context = stream.context();
        this.stream = stream;
        this.module = BenchModule.load(context, "soak", SoakStructs.HEADER);
        Arena arena = Arena.ofAuto();
        this.launch = new LaunchConfig(arena, BLOCKS, SoakStructs.THREADS);
        this.errors = PinnedMemory.allocate(context, (long) Long.BYTES * ERROR_WORDS);
        errors.segment().fill((byte) 0);
        this.params =
                SoakStructs.PARAMS
                        .allocate(arena)
                        .set("errors", errors.deviceAddress())
                        .set("x", x.address())
                        .set("topk_idx", topkIdx.address())
                        .set("topk_weights", topkWeights.address())
                        .setInt("rank", rank)
                        .setInt("num_ranks", numRanks)
                        .setInt("max_tokens", limits.maxTokens())
                        .setInt("hidden", limits.hidden())
                        .setInt("topk", limits.maxTopk())
                        .setInt("num_experts", limits.numExperts());
    }

    /**
     * Begins an exchange: writes this rank's tokens, selections and weights.
     *
     * @param numTokens of every rank, -1 of one that is masked
     */
    public void prepare(long exchange, long seed, int[] numTokens) {
        params.set("exchange", exchange).set("seed", seed);
        for (int rank = 0; rank < numTokens.length; rank++) {
            params.setInt("num_tokens", rank, numTokens[rank]);
        }
        run(PREPARE);
    }

    /** Compares what was received and writes the experts' outputs. */
    public void checkDispatch(
            LowLatencyDispatchResult received, LowLatencyFormat format, Tensor outputs) {
        Tensor scales = received.recvScales();
        params.set("recv_x", received.recvX().address())
                .set("recv_scales", scales == null ? 0 : scales.address())
                .set("counts", received.recvCount().address())
                .set("src_info", received.handle().srcInfo().address())
                .set("layout_range", received.handle().layoutRange().address())
                .set("outputs", outputs.address())
                .setInt(
                        "format",
                        switch (format) {
                            case BF16 -> SoakStructs.NO_SCALES;
                            case FP8, FP8_POWER_OF_TWO -> SoakStructs.FLOAT_SCALES;
                            case FP8_UE8M0 -> SoakStructs.PACKED_SCALES;
                        });
        run(CHECK_DISPATCH);
    }

    /** Compares the sums, BF16 [T,H]. */
    public void checkCombine(Tensor combined) {
        params.set("combined", combined.address());
        run(CHECK_COMBINE);
    }

    private void run(int step) {
        params.setInt("step", step);
        module.function().launch(launch, params.memory(), stream);
    }

    /**
     * Waits for the stream.
     *
     * @throws AssertionError if anything was wrong so far
     */
    public void requireNoErrors() {
        stream.synchronize();
        MemorySegment words = errors.segment();
        long number = words.getAtIndex(JAVA_LONG, 0);
        if (number != 0) {
            throw new AssertionError(
                    number
                            + " complaints, the first about exchange "
                            + words.getAtIndex(JAVA_LONG, 1)
                            + ": "
                            + WHATS[(int) words.getAtIndex(JAVA_LONG, 2)]
                            + " at "
                            + words.getAtIndex(JAVA_LONG, 3)
                            + ", "
                            + words.getAtIndex(JAVA_LONG, 4)
                            + ", "
                            + words.getAtIndex(JAVA_LONG, 5));
        }
    }

    /** Unloads the kernel; while no kernel of its GPU waits for another rank. */
    public void close() {
        module.close();
        errors.close();
    }
}
