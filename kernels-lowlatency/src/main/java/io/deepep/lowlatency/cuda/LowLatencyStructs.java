package io.deepep.lowlatency.cuda;

import io.deepep.CombineFormat;
import io.deepep.Device;
import io.deepep.Fp8E4m3;
import io.deepep.GroupLimits;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.cuda.ibgda.IbgdaStructs;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.DispatchFlagWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Fp8Parts;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LogFmt10;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.KernelEnum;
import io.deepep.spi.Word;

/**
 * What the low-latency kernels and Java share: the definition of {@code lowlatency_structs.cuh} and
 * of {@code lowlatency_wide_structs.cuh}, which differ in how many ranks a group may have. Every
 * offset and stride is computed here on the host; the device only indexes.
 */
final class LowLatencyStructs {
    /** Threads of a block. */
    static final int THREADS = 768;

    /** Teams of warps that send in a block of a combine, and warps that store in each. */
    private static final int SEND_TEAMS = 2;

    private static final int STORE_WARPS = 7;

    private static final int VECTOR_BYTES = 16;

    /** Where a storing warp encodes a part of a row as LogFMT. */
    private static final int LOG_STAGE_BYTES =
            Math.ceilDiv((int) LogFmt10.rowBytes(LowLatencyLayout.PART_CHANNELS), VECTOR_BYTES)
                            * VECTOR_BYTES
                    + VECTOR_BYTES;

    /** Where rows come to that it sums: 31 chunks of 512 bytes, all that a block has room for. */
    private static final int REDUCE_STAGE_BYTES = 31 << 9;

    /** Of a selection's number in its token. */
    private static final int TOPK_BITS = 5;

    private static final int PARITIES = 2;
    private static final int KINDS = Kind.values().length;

    /**
     * Where send halves leave what their receive halves need: captured runs have places of their
     * own, because a replay knows nothing of calls that are between their halves.
     */
    static final int RUN_PLACES = 2 * Banks.COUNT;

    /**
     * Words of RankState before those of which vectors are loaded, besides its two sets of ranks.
     */
    private static final int STATE_WORDS = 5;

    private static final int VECTOR_WORDS = VECTOR_BYTES / Integer.BYTES;

    /** Halves of a call that a launch does. */
    enum Phases implements KernelEnum {
        /** The first. */
        SEND,
        /** The second. */
        RECEIVE,
        /**
         * Not a half: the next launch may begin before this one ends. For graphs, where that saves
         * a microsecond; launches of a stream take longer then.
         */
        ALLOW_NEXT;

        @Override
        public int value() {
            return 1 << ordinal();
        }
    }

    /** Dynamic shared memory of a combine. */
    static int combineSharedBytes(LowLatencyCombinePlan plan) {
        int stage = 0;
        if (plan.isPreReduced()) {
            stage = REDUCE_STAGE_BYTES;
        } else if (plan.format() == CombineFormat.LOGFMT) {
            stage = LOG_STAGE_BYTES;
        }
        return SEND_TEAMS * STORE_WARPS * stage;
    }

    static final KernelStruct SELECTION =
            KernelStruct.builder("Selection", "An output row, in its source's order of sending.")
                    .u32("place", "local expert << kRowBits | row of the expert")
                    .u32("origin", "token << kTopkBits | k")
                    .build();

    static final KernelStruct ROW_SELECTION =
            KernelStruct.builder(
                            "RowSelection", "Selection k of a row that came with weights, at [k].")
                    .u32("place", "as in Selection, or ~0: of another rank, or none")
                    .u32("weight", "the bits of an f32")
                    .build();

    /** Of kernels whose sets of ranks are one word. */
    static final LowLatencyStructs ONE_WORD = new LowLatencyStructs(Integer.SIZE);

    /** Of kernels for as large groups as there may be. */
    static final LowLatencyStructs WIDE =
            new LowLatencyStructs(GroupLimits.lowLatency(Device.Kind.CUDA).maxRanks());

    /** Most ranks of a group, each of which has a bit in a set of ranks. */
    final int maxRanks;

    /** Of an expert's row. */
    private final int rowBits;

    /** The most local experts that a selection has bits for. */
    final int maxLocalExperts;

    final KernelStruct group;
    final KernelStruct run;
    final KernelStruct rankState;
    final KernelStruct bank;
    final KernelStruct dispatch;
    final KernelStruct combine;

    /** The generated header. */
    final KernelHeader header;

    private LowLatencyStructs(int maxRanks) {
        int words = Math.ceilDiv(maxRanks, Integer.SIZE);
        this.maxRanks = maxRanks;
        this.rowBits =
                Integer.SIZE
                        - Integer.numberOfLeadingZeros(maxRanks * LowLatencyLimits.MAX_TOKENS - 1);
        this.maxLocalExperts = 1 << (Integer.SIZE - Math.max(rowBits, DispatchFlagWord.ORDER_BITS));
        this.group = group(maxRanks);
        this.run = run(words);
        this.rankState = rankState(maxRanks, words, run);
        this.bank = bank(maxRanks, words);
        this.dispatch = dispatch(group);
        this.combine = combine(group);
        this.header = newHeader();
    }

    /** Static shared memory of a block and what the driver reserves stay below this. */
    int reservedSharedBytes() {
        return 4096 + (this == WIDE ? 16 * maxRanks : 0); // four counts of each rank
    }

    /** Those of the kernels for a group. */
    static LowLatencyStructs of(int numRanks) {
        return numRanks <= ONE_WORD.maxRanks ? ONE_WORD : WIDE;
    }

    private static KernelStruct group(int ranks) {
        return KernelStruct.builder(
                        "Group",
                        "A rank and its peers; the same for every call, save for status and"
                                + " phases.")
                .struct("network", NetworkStructs.NETWORK)
                .u64("heap", "heaps as mapped here; 0: of another node", ranks)
                .u64("outbox", "bytes from the heap to where cells are composed for a network")
                .u64("state", "RankState")
                .u64("status", "StatusBlock, device address of mapped host memory")
                .u64("ran", "u64 of the operation: the launch it ran last")
                .u64("timed_out", "i32 [num_ranks] of mapped host memory: 1 if masked")
                .u64(
                        "gone",
                        "i32 [num_ranks], host memory: 1 + the rank because of which one is lost, or 0")
                .u64("timeout_ns", "of waits for a rank that has begun the call")
                .u64("start_timeout_ns", "of waits for one that has yet to begin")
                .u64("acks_offset", "u32 [num_ranks][kinds][parities]: a peer's received")
                .u64("header_offset", "by Kind: u64 [epoch parity][rank][words]", KINDS)
                .u64("header_parity_stride", "bytes", KINDS)
                .u64("header_rank_stride", "bytes", KINDS)
                .i32("rank", "")
                .i32("num_ranks", "")
                .i32("mask_timed_out", "a rank that does not come is masked, no fault")
                .i32("phases", "Phases")
                .build();
    }

    private static KernelStruct run(int words) {
        return KernelStruct.builder("Run", "A call between its halves.")
                .u32("epoch", "")
                .u32("next_other", "the first call of the other kind that comes after it")
                .u32("reached", "ranks that its send half sent to", words)
                .u32("dispatch_epoch", "combine: of its dispatch")
                .u32("expected", "combine: ranks that were given this rank's tokens", words)
                .u32("reserved", "")
                .build();
    }

    private static KernelStruct rankState(int ranks, int words, KernelStruct run) {
        return KernelStruct.builder("RankState", "In device memory; zeroed by the host.")
                .u64("launches", "the number of the last one")
                .u32(
                        "lost",
                        "bit r: rank r timed out and is not to be masked: launches fail",
                        words)
                .u32("masked", "bit r: rank r is neither sent to nor waited for", words)
                .u32("epoch", "by Kind: of the last call that was sent", KINDS)
                .u32("arrivals", "blocks of the running launch that have read the above")
                .u32("reserved", "", VECTOR_WORDS - (STATE_WORDS + 2 * words) % VECTOR_WORDS)
                .u32(
                        "received",
                        "by kind and parity: the epoch whose slots are free again",
                        KINDS * PARITIES)
                .u64("decided", "by rank: launch << 1 | gone, where blocks agree", ranks)
                .u64("claimed", "the launch whose fault is recorded")
                .u64("more_reserved", "")
                .struct("runs", run, KINDS, RUN_PLACES)
                .build();
    }

    private static KernelStruct bank(int ranks, int words) {
        return KernelStruct.builder("Bank", "A dispatch, beside its outputs; zeroed by the host.")
                .u64("sent", "DispatchParams::dispatch of the latest, 0 for none")
                .u64("received", "the same, once all is received; 0 until then, or if it failed")
                .u32("epoch", "")
                .u32("reserved", "")
                .u32("reached", "ranks that this rank's tokens were sent to", words)
                .u32("present", "ranks whose tokens were received", words)
                .i32("num_tokens", "of each rank", ranks)
                .i32("num_selections", "from each rank", ranks)
                .i32("num_rows", "from each rank; for observers", ranks)
                .build();
    }

    private static KernelStruct dispatch(KernelStruct group) {
        return KernelStruct.builder("DispatchParams", "See lowlatency_dispatch.cu.")
                .struct("group", group)
                .u64("flag_offset", "[parity][source][max_tokens]: flag_stride each")
                .u64("flag_parity_stride", "bytes")
                .u64("flag_rank_stride", "bytes")
                .u64("flag_stride", "bytes: u32 DispatchFlagWord [topk][4]")
                .u64("row_offset", "[parity][source][max_tokens]: row_stride each")
                .u64("row_parity_stride", "bytes")
                .u64("row_rank_stride", "bytes")
                .u64("x", "bf16 [num_tokens][hidden]")
                .u64("x_stride", "bytes")
                .u64("topk_idx", "i64 [num_tokens][topk]")
                .u64("topk_weights", "f32 [num_tokens][topk], or 0")
                .u64("bank", "Bank")
                .u64(
                        "dispatch",
                        "the host's number of this dispatch; replays have that of the capture")
                .u64("selections", "Selection [num_ranks][max_tokens * max_topk]")
                .u64("sent_topk_idx", "i32 [num_tokens][topk]: a copy of topk_idx")
                .u64(
                        "sent_items",
                        "with batches, u32 [num_tokens][topk]: selection << kTokenBits | row, there")
                .u64(
                        "row_selections",
                        "with weights: RowSelection [num_ranks][max_tokens][max_topk]")
                .u64("row_tokens", "with weights: u32 [num_ranks][max_tokens]")
                .u64("out_x", "[local experts][num_ranks * max_tokens][hidden]")
                .u64("out_scales", "[local experts][columns][num_ranks * max_tokens]")
                .u64("out_src_info", "i32 [local experts][num_ranks * max_tokens]")
                .u64("out_layout_range", "i64 [local experts][num_ranks]: begin << 32 | count")
                .u64("out_counts", "i32 [local experts]")
                .u64("cumulative_stats", "i32 [local experts], added to, or 0")
                .u64("wait_stats", "i64 [num_ranks], ns, added to, or 0")
                .i32("num_tokens", "")
                .i32("topk", "")
                .i32("num_experts", "")
                .i32("experts_per_rank", "")
                .i32("hidden", "")
                .i32("format", "Format")
                .i32("max_tokens", "")
                .i32("max_topk", "")
                .i32("header_words", "of a dispatch; even")
                .i32("row_stride", "bytes, a multiple of 128; of this format")
                .i32("selections_offset", "in a row of a batch: u32 [topk], and a tag")
                .i32("weights_offset", "in a row of a batch: f32 [topk]")
                .i32("counts_shared_offset", "in dynamic shared memory")
                .i32("row_shared_offset", "in dynamic shared memory")
                .i32("run", "of RankState::runs")
                .i32("row_format", "how rows travel, compared with what peers say")
                .build();
    }

    private static KernelStruct combine(KernelStruct group) {
        return KernelStruct.builder("CombineParams", "See lowlatency_combine.cu.")
                .struct("group", group)
                .u64("flag_offset", "u32 [parity][max_tokens][parts][source][max_topk]: epoch")
                .u64("flag_parity_stride", "bytes")
                .u64("flag_token_stride", "bytes")
                .u64("flag_part_stride", "bytes")
                .u64("row_offset", "[parity][source][max_tokens][max_topk]: row_stride each")
                .u64("row_parity_stride", "bytes")
                .u64("row_rank_stride", "bytes")
                .u64("row_stride", "bytes")
                .u64("pack_offset", "[parity][source]: packs, by token and k, or by token")
                .u64("pack_parity_stride", "bytes")
                .u64("pack_rank_stride", "bytes")
                .u64("pack_stride", "bytes, of a row")
                .u64("x", "bf16 [local experts][num_ranks * max_tokens][hidden]")
                .u64("x_expert_stride", "bytes")
                .u64("x_row_stride", "bytes")
                .u64("bank", "Bank")
                .u64("dispatch", "what the bank must have received")
                .u64("selections", "Selection [num_ranks][max_tokens * max_topk]")
                .u64("sent_topk_idx", "i32 [num_tokens][topk] of the dispatch")
                .u64("sent_items", "with batches: u32 [num_tokens][topk] of the dispatch")
                .u64("kept_items", "the same, written for a receive half of its own, or 0")
                .u64(
                        "row_selections",
                        "pre-reduced: RowSelection [num_ranks][max_tokens][max_topk]")
                .u64("row_tokens", "pre-reduced: u32 [num_ranks][max_tokens]")
                .u64("topk_idx", "i64 [num_tokens][topk]")
                .u64("topk_weights", "f32 [num_tokens][topk]; pre-reduced: 0")
                .u64("out", "bf16 [num_tokens][hidden]")
                .u64("out_stride", "bytes")
                .u64("wait_stats", "i64 [num_ranks], ns, added to, or 0")
                .i32("run", "of RankState::runs")
                .i32("num_tokens", "")
                .i32("topk", "")
                .i32("num_experts", "")
                .i32("experts_per_rank", "")
                .i32("hidden", "")
                .i32("row_format", "how rows travel, compared with what peers say")
                .i32("max_tokens", "")
                .i32("max_topk", "")
                .i32("reserved", "")
                .build();
    }

    private KernelHeader newHeader() {
        return new KernelHeader(
                        "deepep::lowlatency", "deepep_lowlatency_structs", LowLatencyStructs.class)
                .include("deepep/network_structs.cuh", NetworkStructs.HEADER)
                .include("deepep/ibgda_structs.cuh", IbgdaStructs.HEADER)
                .include("deepep/status_block.cuh", StatusStruct.HEADER)
                .constant("kMaxNvlRanks", LowLatencyLayout.SMALL_NODE_RANKS)
                .constant("kMaxRanks", maxRanks)
                .constant("kMaxTokens", LowLatencyLimits.MAX_TOKENS)
                .constant("kMaxTopk", NormalLimits.MAX_TOPK)
                .constant("kMaxLocalExperts", maxLocalExperts)
                .constant("kThreads", THREADS)
                .constant("kSendTeams", SEND_TEAMS)
                .constant("kStoreWarps", STORE_WARPS)
                .constant("kLogStageBytes", LOG_STAGE_BYTES)
                .constant("kReduceStageBytes", REDUCE_STAGE_BYTES)
                .constant("kPartChannels", LowLatencyLayout.PART_CHANNELS)
                .constant("kPackedTokens", LowLatencyLayout.PACKED_TOKENS)
                .constant("kPackedSums", LowLatencyLayout.PACKED_SUMS)
                .constant("kDispatchBatchRows", LowLatencyLayout.DISPATCH_BATCH_ROWS)
                .constant("kUnitChannels", LowLatencyLayout.UNIT_CHANNELS)
                .constant("kUnitBytes", LowLatencyLayout.UNIT_BYTES)
                .constant("kScaleChannels", Fp8E4m3.CHANNELS_PER_SCALE)
                .constant("kLogChannels", LogFmt10.CHANNELS)
                .constant("kLogBlockBytes", LogFmt10.BLOCK_BYTES)
                .constant("kFp8ScaleBytes", Fp8Parts.SCALE_BYTES)
                .constant("kFp8PartBytes", Fp8Parts.PART_BYTES)
                .constant("kFirstEpoch", Word.FIRST_EPOCH)
                .constant("kOrderBits", DispatchFlagWord.ORDER_BITS)
                .constant("kTokenBits", DispatchFlagWord.TOKEN_BITS)
                .constant("kRowBits", rowBits)
                .constant("kTopkBits", TOPK_BITS)
                .constant("kHeaderCounts", DispatchWord.COUNT)
                .constant("kCombineHeaderWords", CombineWord.COUNT)
                .enumeration("Phases", "int32_t", "", Phases.class)
                .enumeration("Kind", "int32_t", "", Kind.class)
                .enumeration("Format", "int32_t", "", LowLatencyFormats.Code.class)
                .enumeration("DispatchHeaderWord", "int32_t", "", DispatchWord.class)
                .enumeration("DispatchFlagWord", "int32_t", "Flag", DispatchFlagWord.class)
                .enumeration("CombineHeaderWord", "int32_t", "", CombineWord.class)
                .struct(group)
                .struct(run)
                .struct(rankState)
                .struct(bank)
                .struct(SELECTION)
                .struct(ROW_SELECTION)
                .struct(dispatch)
                .struct(combine);
    }
}
