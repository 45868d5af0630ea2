package io.deepep.normal.cuda.kernels;

import io.deepep.NormalLimits;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.normal.DoneWord;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.RingShape;
import io.deepep.spi.KernelEnum;
import io.deepep.spi.Layout;
import io.deepep.spi.Word;

/**
 * The numbers that the normal kernels are built with and that launches are computed from. Kernels
 * find them in {@code normal_structs.cuh}, under its hash.
 */
public final class KernelConstants {
    public static final int WARP = 32;

    /** Of a block of dispatch, expand and layout. */
    public static final int THREADS = 512;

    /** Most threads of a block of stage and layout. */
    public static final int MAX_THREADS = 1024;

    public static final int WARPS = THREADS / WARP;

    /** Most blocks of a launch. */
    public static final int MAX_BLOCKS = NormalRdmaLayout.MAX_BLOCKS;

    /** Rows that a copy warp of a dispatch holds in shared memory. */
    public static final int DISPATCH_STAGES = 2;

    /** Rows that a copy warp holds there in a dispatch across nodes. */
    public static final int ROW_STAGES = 3;

    /** Bytes that one of combine's consumers sums of a chunk: vectors of 16 bytes. */
    public static final int VECTORS = 2;

    public static final int VECTOR_BYTES = 16;

    /** Most threads of a block that sum. */
    public static final int MAX_CONSUMERS = 512;

    /** Warps of a combining block that do not sum. */
    public static final int SERVICE_WARPS = 2;

    /** Warps of a block that do not sum in a combine across nodes. */
    public static final int INTERNODE_SERVICE_WARPS = 3;

    /** Warps of a staging block, each for itself. */
    public static final int STAGE_WARPS = 4;

    /** Chunks that such a warp has in flight. */
    public static final int STAGE_DEPTH = 3;

    /** A batch that is staged has so many, or one row where a row has more. */
    public static final int CHUNKS_PER_BATCH = 8;

    /** Of a ring, in shared memory: {@code RingTail} and {@code RingHead}. */
    public static final int RING_STATE_BYTES = 32;

    /** Low bits of the key of a bad selection that {@code LayoutParams} brings back: its k. */
    public static final int LAYOUT_KEY_BITS = 8;

    /** Times that observers get for each rank. */
    public static final int WAITS_PER_RANK = WaitIdx.values().length;

    /** What a rank waits for, of each other rank. */
    public enum WaitIdx implements KernelEnum {
        HEADER,
        END
    }

    /** What the launch that copies received rows out does. */
    public enum ExpandMode implements KernelEnum {
        COPY_ROWS,
        BUILD_MAP,
        USE_MAP
    }

    private KernelConstants() {}

    static KernelHeader addTo(KernelHeader header, int maxRanks) {
        return header.constant("kMaxRanks", maxRanks)
                .constant("kMaxTopk", NormalLimits.MAX_TOPK)
                .constant("kMaxBlocks", MAX_BLOCKS)
                .constant("kThreads", THREADS)
                .constant("kMaxThreads", MAX_THREADS)
                .constant("kFirstEpoch", Word.FIRST_EPOCH)
                .constant("kFlagStrideBytes", (int) Layout.LINE_BYTES)
                .constant("kHeaderWords", HeaderWord.HEADER_WORDS)
                .constant("kHeaderCounts", HeaderWord.HEADER_COUNTS)
                .constant("kNumCompared", HeaderWord.NUM_COMPARED)
                .constant("kAllInPlace", HeaderWord.ALL_IN_PLACE)
                .constant("kNoRoom", HeaderWord.NO_ROOM)
                .constant("kWaitsPerRank", WAITS_PER_RANK)
                .constant("kDispatchStages", DISPATCH_STAGES)
                .constant("kRowStages", ROW_STAGES)
                .constant("kVectors", VECTORS)
                .constant("kMaxConsumers", MAX_CONSUMERS)
                .constant("kServiceWarps", SERVICE_WARPS)
                .constant("kInternodeServiceWarps", INTERNODE_SERVICE_WARPS)
                .constant("kStageWarps", STAGE_WARPS)
                .constant("kStageDepth", STAGE_DEPTH)
                .constant("kChunksPerBatch", CHUNKS_PER_BATCH)
                .constant("kRingStateBytes", RING_STATE_BYTES)
                .constant("kLayoutKeyBits", LAYOUT_KEY_BITS)
                .constant("kRingsShift", RingShape.RINGS_SHIFT)
                .enumeration("HeaderWord", "int", "", HeaderWord.class)
                .enumeration("DoneWord", "int", "Done", DoneWord.class)
                .enumeration("Op", "int32_t", "Op", NormalCall.class)
                .enumeration("WaitIdx", "int", "WaitFor", WaitIdx.class)
                .enumeration("ExpandMode", "int32_t", "", ExpandMode.class);
    }
}
