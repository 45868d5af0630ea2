package io.deepep.cuda.kernel;

import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;

/**
 * {@code StatusBlock} of {@code deepep/status_block.cuh}: what a launch of any mode tells the host,
 * in mapped host memory.
 */
public final class StatusStruct {
    /** The struct. */
    public static final KernelStruct BLOCK =
            KernelStruct.builder("StatusBlock", "See status.cuh.")
                    .u64("ready", "epoch | code << 32 once the counts are known")
                    .u64("done", "epoch | code << 32 as the last word")
                    .i32("num_rows", "rows this rank receives")
                    .i32("num_expanded_rows", "sum of the aligned expert counts")
                    .u32("code", "of the first fault since the host set it to 0; below: that fault")
                    .u32("phase", "")
                    .i32("rank", "")
                    .i32("peer", "")
                    .i32("token", "")
                    .i32("k", "")
                    .i64("expected", "")
                    .i64("seen", "")
                    .build();

    /** {@code deepep/status_block.cuh}, with {@link FaultCode} and {@link FaultPhase}. */
    public static final KernelHeader HEADER =
            new KernelHeader("deepep", null, StatusStruct.class)
                    .enumeration("Code", "uint32_t", "", FaultCode.class)
                    .enumeration("Phase", "uint32_t", "Phase", FaultPhase.class)
                    .struct(BLOCK);

    private StatusStruct() {}
}
