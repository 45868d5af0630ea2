package io.deepep.bench.cuda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;

/**
 * What the kernels of the benchmarks and Java share: the definition of {@code bench_structs.cuh}.
 */
final class BenchStructs {
    /** A rank's flag lies on a line of its own. */
    static final int FLAG_STRIDE_BYTES = 128;

    /** Most warps of a block of the exchange. */
    static final int MAX_WARPS = 16;

    /** Rows that a warp of the exchange has in flight. */
    static final int STAGES = 2;

    static final KernelStruct GATE =
            KernelStruct.builder("GateParams", "See bench_gate.cu.")
                    .u64("flags", "u64 [num_ranks]: every rank's, as this GPU sees them")
                    .u64("epoch", "of this gate; grows by one with each")
                    .u64("pause_ns", "between the barrier and the end")
                    .u64("timeout_ns", "")
                    .i32("rank", "")
                    .i32("num_ranks", "")
                    .build();

    static final KernelStruct EMPTY =
            KernelStruct.builder("EmptyParams", "See bench_empty.cu.")
                    .u64("reserved", "as many bytes as a low-latency kernel takes", 76)
                    .build();

    static final KernelStruct EXCHANGE =
            KernelStruct.builder("ExchangeParams", "See bench_exchange.cu.")
                    .u64("memory", "u64 [num_ranks]: every rank's, as this GPU sees it")
                    .u64("target_offset", "of the target half")
                    .i32("rank", "")
                    .i32("num_ranks", "")
                    .i32("rows", "to or from each peer")
                    .i32("row_bytes", "a multiple of 16")
                    .i32("pull", "1: rows are read from peers, 0: written to them")
                    .i32("reserved", "")
                    .build();

    static final KernelStruct PUT =
            KernelStruct.builder("PutParams", "See bench_put.cu, _latency and _sparse.")
                    .struct("network", NetworkStructs.NETWORK)
                    .struct("slots", NetworkStructs.CELLS)
                    .struct("flags", NetworkStructs.CELLS)
                    .u64("source", "what is put: a cell's slots")
                    .u64("slot_bytes", "a multiple of 16")
                    .u64("row_bytes", "of a message, a multiple of 16")
                    .u64("return_bytes", "of an answer, a multiple of 16")
                    .u64("epoch", "of the first signal; grows from launch to launch")
                    .u64("timeout_ns", "")
                    .u64("num_timeouts", "u64 of mapped host memory")
                    .i32("peer", "")
                    .i32("num_rows", "")
                    .build();

    static final KernelHeader HEADER =
            new KernelHeader("deepep::bench", "deepep_bench_structs_hash", BenchStructs.class)
                    .include("deepep/network_structs.cuh", NetworkStructs.HEADER)
                    .constant("kFlagStrideBytes", FLAG_STRIDE_BYTES)
                    .constant("kMaxWarps", MAX_WARPS)
                    .constant("kStages", STAGES)
                    .struct(GATE)
                    .struct(EMPTY)
                    .struct(EXCHANGE)
                    .struct(PUT);

    private BenchStructs() {}
}
