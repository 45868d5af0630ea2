package io.deepep.normal.cuda.kernels;

import io.deepep.EpTopology;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.normal.HeaderWord;

/**
 * What the normal kernels and Java share: the definition of {@code normal_structs.cuh}. Every
 * offset and stride is computed here on the host; the device only indexes.
 */
public final class NormalStructs {
    /** Of kernels for nodes whose ranks have a lane of a warp each, and for all others. */
    public static final NormalStructs NARROW = new NormalStructs(HeaderWord.NARROW_RANKS);

    /** Of kernels for large nodes. */
    public static final NormalStructs WIDE = new NormalStructs(EpTopology.MAX_NVL_RANKS);

    /** Most ranks of a node. */
    public final int maxRanks;

    public final KernelStruct group;
    public final KernelStruct localState;
    public final KernelStruct dispatch;
    public final KernelStruct combine;

    /** The same across nodes, which begin with these. */
    public final KernelStruct internodeDispatch;

    public final KernelStruct internodeCombine;

    public static final KernelStruct EXPAND =
            KernelStruct.builder("ExpandParams", "See normal_expand.cu. Addresses, not offsets.")
                    .struct("group", NARROW.group)
                    .u64("rows", "received rows: [*num_rows][row_stride]")
                    .u64("topk", "i32 [*num_rows][num_topk], local expert or -1; 0: kCopyRows")
                    .u64("weights", "f32 [*num_rows][num_topk], or 0")
                    .u64("num_rows", "i32")
                    .u64("raw_expert_counts", "i32 [num_local_experts]")
                    .u64("block_hist", "u32 [blocks][num_local_experts] workspace")
                    .u64("expanded_rows", "i32 [*num_rows][num_topk]: kBuildMap writes it")
                    .u64("out_x", "x_bytes each")
                    .u64("out_x_stride", "bytes")
                    .u64("out_scales", "f32, or 0")
                    .u64("out_scales_token_stride", "floats")
                    .u64("out_scales_group_stride", "floats")
                    .u64("out_weights", "f32 [expanded rows], or 0")
                    .u64("out_expert_offsets", "i32 [num_local_experts + 1]: kBuildMap writes it")
                    .i32("mode", "ExpandMode")
                    .i32("num_topk", "")
                    .i32("num_local_experts", "")
                    .i32("expert_alignment", "")
                    .i32("out_limit", "rows of out_x")
                    .i32("x_bytes", "")
                    .i32("num_scales", "")
                    .i32("scales_offset", "in a row, bytes")
                    .i32("row_stride", "bytes")
                    .i32("num_copy_warps", "1 .. 16")
                    .i32("stages_offset", "in dynamic shared memory, a multiple of 128")
                    .i32("reserved", "")
                    .build();

    public static final KernelStruct STAGE =
            KernelStruct.builder(
                            "StageParams",
                            "See normal_stage.cu and normal_cast.cu. Addresses, not offsets.")
                    .u64("x", "bf16, or fp8 if there are scales [rows][hidden]")
                    .u64("x_stride", "bytes")
                    .u64("scales", "f32 [rows][hidden / 128] of fp8, or 0")
                    .u64("scales_row_stride", "floats")
                    .u64("scales_group_stride", "floats")
                    .u64("out", "rows [*num_rows], 16-byte aligned as is their stride")
                    .u64("out_stride", "bytes")
                    .u64("num_rows", "i32")
                    .u64("expanded_rows", "i32 [*num_rows][topk]; 0: rows are copied one to one")
                    .u64("weights", "f32 [*num_rows][topk]; expanded: f32 [rows]; or 0")
                    .u64("out_weights", "f32 [*num_rows][topk]")
                    .u64(
                            "source_rows",
                            "i32 [num_sources + 1]: s owns [s] .. [s + 1]; 0: all rows are copied")
                    .i32("hidden", "")
                    .i32("topk", "")
                    .i32("num_sources", "ranks of all nodes")
                    .i32("num_ranks", "of the node; rows of sources s = rank mod num_ranks stay")
                    .i32("rank", "within the node")
                    .i32("x_rows", "rows of x")
                    .build();

    public static final KernelStruct LAYOUT =
            KernelStruct.builder("LayoutParams", "See normal_layout.cu. Counters start zeroed.")
                    .u64("topk_idx", "i64 [num_tokens][topk]")
                    .u64("out_tokens_per_rank", "i32 [num_ranks]")
                    .u64("out_tokens_per_node", "i32 [num_nodes]")
                    .u64("out_tokens_per_expert", "i32 [num_experts]")
                    .u64("out_is_token_in_rank", "bool [num_tokens][num_ranks]")
                    .u64("out_bad_selection", "u64: ~(token << 8 | k) of the first bad one")
                    .i32("num_tokens", "")
                    .i32("topk", "")
                    .i32("num_experts", "")
                    .i32("num_nodes", "num_ranks is num_nodes * ranks_per_node")
                    .i32("ranks_per_node", "")
                    .i32("reserved", "")
                    .build();

    /** {@code normal_structs.cuh}. */
    public static final KernelHeader HEADER =
            NARROW.newHeader().struct(EXPAND).struct(STAGE).struct(LAYOUT);

    /** {@code normal_wide_structs.cuh}. */
    public static final KernelHeader WIDE_HEADER = WIDE.newHeader();

    /** {@code internode_structs.cuh}. */
    public static final KernelHeader INTERNODE_HEADER =
            InternodeStructs.newHeader(NARROW, "../shared/normal_structs.cuh");

    /** {@code internode_wide_structs.cuh}. */
    public static final KernelHeader INTERNODE_WIDE_HEADER =
            InternodeStructs.newHeader(WIDE, "../shared/normal_wide_structs.cuh");

    private NormalStructs(int maxRanks) {
        this.maxRanks = maxRanks;
        this.group = group(maxRanks);
        this.localState = localState(maxRanks);
        this.dispatch = dispatch(group);
        this.combine = combine(group);
        this.internodeDispatch =
                InternodeStructs.params(
                        "InternodeDispatchParams", "internode_dispatch.cuh", dispatch);
        this.internodeCombine =
                InternodeStructs.params("InternodeCombineParams", "internode_combine.cuh", combine);
    }

    /** Those of the kernels for one node of so many ranks, or of several nodes. */
    public static NormalStructs of(int numNvlRanks) {
        return numNvlRanks <= NARROW.maxRanks ? NARROW : WIDE;
    }

    /** The generated header: of kernels for large nodes, what differs; of others, everything. */
    public KernelHeader header() {
        return this == WIDE ? WIDE_HEADER : HEADER;
    }

    /** The same for kernels across nodes. */
    public KernelHeader internodeHeader() {
        return this == WIDE ? INTERNODE_WIDE_HEADER : INTERNODE_HEADER;
    }

    private KernelHeader newHeader() {
        return KernelConstants.addTo(
                        new KernelHeader(
                                        "deepep::normal",
                                        "deepep_normal_structs",
                                        NormalStructs.class)
                                .include("deepep/status_block.cuh", StatusStruct.HEADER),
                        maxRanks)
                .struct(group)
                .struct(localState)
                .struct(dispatch)
                .struct(combine);
    }

    private static KernelStruct group(int ranks) {
        return KernelStruct.builder(
                        "Group",
                        "A rank and its peers of one node; only the status differs by call.")
                .u64("heap", "peers' heaps as mapped here", ranks)
                .u64("state", "LocalState, zeroed once by the host")
                .u64("status", "StatusBlock, device address of mapped host memory")
                .u64("timeout_ns", "of waits once all ranks are in the call")
                .u64("start_timeout_ns", "of waits for the headers of ranks that have yet to begin")
                .u64("header_offset", "[epoch parity][source][32 + experts per rank] u64")
                .u64("header_parity_stride", "bytes")
                .u64("header_rank_stride", "bytes")
                .u64("meta_flag_offset", "u64 per source, kFlagStrideBytes apart")
                .u64("done_flag_offset", "u64 by DoneWord per source, kFlagStrideBytes apart")
                .u64(
                        "waits",
                        "u64 [all ranks][kWaitsPerRank], ns, by WaitIdx, in host memory; or 0")
                .u64(
                        "gone",
                        "i32 [all ranks] in host memory: 1 + who is to blame for its absence, or 0")
                .i32("rank", "within the node")
                .i32("num_ranks", "of the node")
                .i32("first_rank", "of the node, among all ranks")
                .i32("reserved", "")
                .build();
    }

    private static KernelStruct localState(int ranks) {
        return KernelStruct.builder("LocalState", "A rank's own; zeroed once by the host.")
                .u64("barrier", "generation of the grid barrier of expand")
                .u64("bad_selection", "~(token << 8 | k) of the first bad one, or 0")
                .u64("detail", "of the fault `code`, for the peers")
                .u64("culprit", "the rank that the fault is about, for the peers")
                .u32("epoch", "of the last call that ended")
                .u32("claimed_epoch", "the epoch whose fault record has been claimed")
                .u32("code", "first fault of this epoch")
                .u32("cursor", "tokens handed out, beyond each copy warp's first")
                .u32("stage_cursor", "batches of staged rows handed out")
                .u32("layout_arrivals", "blocks; each counter returns to 0")
                .u32("meta_arrivals", "")
                .u32("exit_arrivals", "")
                .u32("barrier_arrivals", "")
                .u32("waiting_epoch", "the epoch in which this rank has said that it waits")
                .u32("waiting_beat", "when it said last that others have yet to begin")
                .u32("masked", "Masks.word, which ranks compare")
                .u32("masked_ranks", "of the node: Masks.words", Math.ceilDiv(ranks, Integer.SIZE))
                .u32("told_since", "the first of the calls that ended with a code until now, or 0")
                .i32("block_counts", "tokens to each rank", KernelConstants.MAX_BLOCKS, ranks)
                .build();
    }

    private static KernelStruct dispatch(KernelStruct group) {
        return KernelStruct.builder("DispatchParams", "See normal_dispatch.cu.")
                .struct("group", group)
                .u64("recv_offset", "rows: [capacity][row_stride]")
                .u64("recv_topk_offset", "i32 [capacity][topk], rank-local expert or -1")
                .u64("recv_weights_offset", "f32 [capacity][topk], 0 where not local")
                .u64("x", "[num_tokens], x_bytes each")
                .u64("x_stride", "bytes")
                .u64("scales", "f32 [num_tokens][num_scales]")
                .u64("scales_token_stride", "floats")
                .u64("scales_group_stride", "floats")
                .u64("topk_idx", "i64 [num_tokens][topk]; 0: is_token_in_rank decides")
                .u64("topk_weights", "f32 [num_tokens][topk], or 0")
                .u64("is_token_in_rank", "bool [num_tokens][num_ranks], or 0")
                .u64("tokens_per_rank", "i32 [num_ranks] that the layout claims, or 0")
                .u64("tokens_per_expert", "i32 [num_experts] that the layout claims, or 0")
                .u64("token_rows", "i32 [num_tokens][num_ranks], -1: not sent; read if cached")
                .u64("token_order", "i32 [num_tokens][num_ranks] workspace, 0 if cached")
                .u64("expert_hist", "u32 [num_experts] workspace, zeroed once by the host")
                .u64(
                        "handle_epoch",
                        "u64: epoch of the routing | masked << 32, 0: none; read if cached")
                .u64("out_topk_idx", "i64 [num_rows or num_worst_rows][topk], or 0")
                .u64("out_topk_weights", "f32 [num_rows or num_worst_rows][topk], or 0")
                .u64("out_raw_expert_counts", "i32 [experts per rank], or 0")
                .u64(
                        "out_source_rows",
                        "i32 [num_ranks + 1]; [num_ranks][2]: first row to a rank, count; or 0")
                .u64("out_num_rows", "i32, or 0")
                .u64("host_expert_counts", "i32 [experts per rank] in host memory, or 0")
                .i32("num_tokens", "")
                .i32("topk", "0 without topk_idx")
                .i32("num_experts", "0 without topk_idx")
                .i32("expert_alignment", "")
                .i32("hidden", "")
                .i32("x_bytes", "of a row of x")
                .i32("num_scales", "0: none")
                .i32("scales_offset", "in a row, bytes")
                .i32("row_stride", "bytes, a multiple of 128")
                .i32("row_limit", "rows this rank takes: capacity or num_worst_rows")
                .i32("num_worst_rows", "rows of out_topk_idx to fill with -1; 0: none")
                .i32("num_copy_warps", "1 .. 15; several nodes: 2, 4 or 8")
                .i32("cached", "token_rows is read, no counting, no metadata")
                .i32("expanded_limit", "rows the expanded layout takes; 0: all that come")
                .i32("bases_offset", "in dynamic shared memory, a multiple of 128")
                .i32("stages_offset", "in dynamic shared memory, a multiple of 128")
                .build();
    }

    private static KernelStruct combine(KernelStruct group) {
        return KernelStruct.builder("CombineParams", "See normal_combine.cu.")
                .struct("group", group)
                .u64("x", "rows this rank offers: heap offset, or address if x_absolute")
                .u64("x_stride", "bytes")
                .u64("weights", "f32 [num_rows][topk], given as x is; ignored where topk = 0")
                .u64("weights_stride", "floats")
                .u64("stage_x", "rows that this launch brings to x, 16-byte aligned, or 0")
                .u64("stage_x_stride", "bytes, a multiple of 16")
                .u64("staged_flag_offset", "u64 [stager][batch of rows]")
                .u64("staged_flag_stride", "bytes from one stager's to the next one's")
                .u64("source_rows", "out_source_rows of the dispatch; read if a rank has stage_x")
                .u64("token_rows", "i32 [num_tokens][num_ranks] of the dispatch")
                .u64("handle_epoch", "u64: epoch of the routing | masked << 32, 0: none")
                .u64("bias", "bf16 [num_tokens][hidden], or 0", 2)
                .u64("bias_stride", "bytes", 2)
                .u64("out", "bf16 [num_tokens][hidden]")
                .u64("out_stride", "bytes")
                .u64("out_weights", "f32 [num_tokens][topk], or 0")
                .i32("x_absolute", "")
                .i32("num_rows", "rows of x that peers may read")
                .i32("num_tokens", "")
                .i32("hidden", "")
                .i32("topk", "0: no weights")
                .i32("chunk_bytes", "rows are summed in such chunks; <= 16384, 16-aligned")
                .i32("num_chunks", "ceil(hidden * 2 / chunk_bytes)")
                .i32("slot_bytes", "of shared memory for a chunk")
                .i32("row_bytes", "of a row as it travels, with its padding")
                .i32("num_slots", "chunks in shared memory, at least 12")
                .i32("batch_rows", "rows of a batch that is staged")
                .i32("num_stage_blocks", "blocks that stage, fewer than the launch has; or 0")
                .i32("room", "rows of the region at x, if stage_x")
                .i32("rings_offset", "several nodes: in dynamic shared memory")
                .build();
    }
}
