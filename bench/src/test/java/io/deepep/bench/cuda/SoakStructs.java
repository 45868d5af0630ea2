package io.deepep.bench.cuda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;

/** What the kernel of the soak and Java share: the definition of {@code soak_structs.cuh}. */
final class SoakStructs {
    /** Threads of a block of the soak. */
    static final int THREADS = 256;

    /** The most ranks of low-latency mode. */
    static final int RANKS = 32;

    /** Formats of received rows, as the soak tells them apart. */
    static final int NO_SCALES = 0;

    static final int FLOAT_SCALES = 1;
    static final int PACKED_SCALES = 2;

    static final KernelStruct PARAMS =
            KernelStruct.builder("SoakParams", "See bench_soak.cu.")
                    .u64("seed", "of the exchange")
                    .u64("exchange", "its number")
                    .u64("errors", "u64 [8]: complaints, then the first: exchange, what, where")
                    .u64("x", "bf16 [max_tokens][hidden]")
                    .u64("topk_idx", "i64 [max_tokens][topk]")
                    .u64("topk_weights", "f32 [max_tokens][topk]")
                    .u64("recv_x", "[local experts][num_ranks * max_tokens][hidden]")
                    .u64("recv_scales", "[local experts][columns][num_ranks * max_tokens]")
                    .u64("counts", "i32 [local experts]")
                    .u64("src_info", "i32 [local experts][num_ranks * max_tokens]")
                    .u64("layout_range", "i64 [local experts][num_ranks]")
                    .u64("outputs", "bf16 [local experts][num_ranks * max_tokens][hidden]")
                    .u64("combined", "bf16 [num_tokens][hidden]")
                    .i32("num_tokens", "of every rank; -1: it is masked", RANKS)
                    .i32("step", "Step")
                    .i32("format", "kNoScales, kFloatScales or kPackedScales")
                    .i32("rank", "")
                    .i32("num_ranks", "")
                    .i32("max_tokens", "")
                    .i32("hidden", "")
                    .i32("topk", "")
                    .i32("num_experts", "")
                    .build();

    static final KernelHeader HEADER =
            new KernelHeader("deepep::bench", "deepep_soak_structs_hash", SoakStructs.class)
                    .constant("kSoakThreads", THREADS)
                    .constant("kNoScales", NO_SCALES)
                    .constant("kFloatScales", FLOAT_SCALES)
                    .constant("kPackedScales", PACKED_SCALES)
                    .struct(PARAMS);

    private SoakStructs() {}
}
