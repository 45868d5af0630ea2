package io.deepep.normal.cuda;

import io.deepep.cuda.KernelParams;
import java.lang.foreign.Arena;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The parameter structs of {@code normal_params.cuh}, field by field in order: 8-byte fields, then
 * 4-byte ones, so offsets follow without padding. A test compares them with the header.
 */
final class KernelStruct {
    static final KernelStruct GROUP =
            new KernelStruct(
                    "Group",
                    0,
                    List.of(
                            "heap[8]",
                            "state",
                            "status",
                            "timeout_ns",
                            "header_offset",
                            "header_parity_stride",
                            "header_rank_stride",
                            "meta_flag_offset",
                            "done_flag_offset"),
                    List.of("rank", "num_ranks"));
    static final KernelStruct DISPATCH =
            new KernelStruct(
                    "DispatchParams",
                    GROUP.size,
                    List.of(
                            "recv_offset",
                            "recv_src_offset",
                            "recv_topk_offset",
                            "recv_weights_offset",
                            "x",
                            "x_stride",
                            "scales",
                            "scales_token_stride",
                            "scales_group_stride",
                            "topk_idx",
                            "topk_weights",
                            "is_token_in_rank",
                            "token_rows",
                            "token_order",
                            "expert_hist",
                            "out_topk_idx",
                            "out_topk_weights",
                            "out_src_idx",
                            "out_expert_counts",
                            "out_raw_expert_counts",
                            "out_source_rows",
                            "out_num_rows",
                            "host_expert_counts"),
                    List.of(
                            "num_tokens",
                            "topk",
                            "num_experts",
                            "expert_alignment",
                            "hidden",
                            "x_bytes",
                            "num_scales",
                            "scales_offset",
                            "row_stride",
                            "row_limit",
                            "num_worst_rows",
                            "num_copy_warps",
                            "cached",
                            "expanded_limit",
                            "bases_offset",
                            "stages_offset"));
    static final KernelStruct COMBINE =
            new KernelStruct(
                    "CombineParams",
                    GROUP.size,
                    List.of(
                            "x",
                            "x_stride",
                            "weights",
                            "weights_stride",
                            "token_rows",
                            "bias[2]",
                            "bias_stride[2]",
                            "out",
                            "out_stride",
                            "out_weights"),
                    List.of(
                            "x_absolute",
                            "weights_absolute",
                            "num_rows",
                            "num_tokens",
                            "hidden",
                            "topk",
                            "chunk_bytes",
                            "num_chunks",
                            "num_slots",
                            "reserved"));
    static final KernelStruct EXPAND =
            new KernelStruct(
                    "ExpandParams",
                    GROUP.size,
                    List.of(
                            "rows",
                            "topk",
                            "weights",
                            "num_rows",
                            "raw_expert_counts",
                            "block_hist",
                            "expanded_rows",
                            "out_x",
                            "out_x_stride",
                            "out_scales",
                            "out_scales_token_stride",
                            "out_scales_group_stride",
                            "out_weights"),
                    List.of(
                            "mode",
                            "num_topk",
                            "num_local_experts",
                            "expert_alignment",
                            "out_limit",
                            "x_bytes",
                            "num_scales",
                            "scales_offset",
                            "row_stride",
                            "num_copy_warps",
                            "stages_offset",
                            "reserved"));
    static final KernelStruct STAGE =
            new KernelStruct(
                    "StageParams",
                    0,
                    List.of(
                            "x",
                            "x_stride",
                            "out",
                            "out_stride",
                            "num_rows",
                            "expanded_rows",
                            "weights",
                            "out_weights"),
                    List.of("hidden", "topk"));
    static final KernelStruct LAYOUT =
            new KernelStruct(
                    "LayoutParams",
                    0,
                    List.of(
                            "topk_idx",
                            "out_tokens_per_rank",
                            "out_tokens_per_expert",
                            "out_is_token_in_rank",
                            "out_bad_selection"),
                    List.of("num_tokens", "topk", "num_experts", "num_ranks"));

    private final String name;
    private final Map<String, Long> offsets = new LinkedHashMap<>();
    private final long size;

    /** {@code first} bytes belong to the group at the beginning. */
    private KernelStruct(String name, long first, List<String> longs, List<String> ints) {
        this.name = name;
        this.size = place(ints, 4, place(longs, 8, first));
    }

    /** The struct's name in the header. */
    String name() {
        return name;
    }

    private long place(List<String> names, int width, long first) {
        long next = first;
        for (String declared : names) {
            int bracket = declared.indexOf('[');
            String name = bracket < 0 ? declared : declared.substring(0, bracket);
            int count =
                    bracket < 0
                            ? 1
                            : Integer.parseInt(
                                    declared.substring(bracket + 1, declared.length() - 1));
            offsets.put(name, next);
            next += (long) width * count;
        }
        return next;
    }

    /** Bytes of the struct. */
    long size() {
        return size;
    }

    /** Field offsets in order. */
    Map<String, Long> offsets() {
        return offsets;
    }

    long offset(String field) {
        Long offset = offsets.get(field);
        if (offset == null) {
            throw new IllegalArgumentException(name + " has no field " + field);
        }
        return offset;
    }

    /** Zeroed parameters, to be filled once and launched often. */
    Params allocate(Arena arena) {
        return new Params(this, KernelParams.struct(arena, size, 8));
    }

    /** Parameters of one launch by field name. */
    record Params(KernelStruct struct, KernelParams memory) {
        Params set(String field, long value) {
            memory.setLong(struct.offset(field), value);
            return this;
        }

        Params set(String field, int idx, long value) {
            memory.setLong(struct.offset(field) + 8L * idx, value);
            return this;
        }

        Params setInt(String field, int value) {
            memory.setInt(struct.offset(field), value);
            return this;
        }
    }
}
