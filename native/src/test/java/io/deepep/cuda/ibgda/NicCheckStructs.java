package io.deepep.cuda.ibgda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;

/** Parameters of the kernels in {@code nic_checks.cu}. */
final class NicCheckStructs {
    static final int PUT = 1;
    static final int PUT_SIGNAL = 2;
    static final int SIGNAL = 3;
    static final int QUIET = 4;

    static final KernelStruct COMMAND =
            KernelStruct.builder("NicCommand", "One call of the policy.")
                    .struct("cells", NetworkStructs.CELLS)
                    .struct("flags", NetworkStructs.CELLS)
                    .u64("offset", "of lane 0")
                    .u64("stride", "from lane to lane")
                    .u64("num_bytes", "of each lane")
                    .u64("flag_offset", "of lane 0; the next lane's is the next u64")
                    .u64("value", "of lane 0; the next lane's is one more")
                    .u64("num_lanes", "")
                    .i32("kind", "")
                    .i32("node", "")
                    .build();

    static final KernelStruct SCRIPT =
            KernelStruct.builder("NicScript", "See deepep_nic_script.")
                    .struct("net", NetworkStructs.NETWORK)
                    .u64("commands", "NicCommand [num_commands]")
                    .i32("num_commands", "")
                    .i32("padding", "")
                    .build();

    static final KernelStruct EXCHANGE =
            KernelStruct.builder("NicExchange", "See deepep_nic_exchange.")
                    .struct("net", NetworkStructs.NETWORK)
                    .struct("slots", NetworkStructs.CELLS)
                    .struct("flags", NetworkStructs.CELLS)
                    .struct("acks", NetworkStructs.CELLS)
                    .u64("errors", "u64")
                    .u64("timeout_ns", "")
                    .u64("slot_bytes", "")
                    .u64("num_slots", "of a channel")
                    .i32("num_rounds", "")
                    .i32("padding", "")
                    .build();

    static final KernelHeader HEADER =
            new KernelHeader("deepep", "deepep_nic_check_structs", NicCheckStructs.class)
                    .include("deepep/network_structs.cuh", NetworkStructs.HEADER)
                    .include("deepep/ibgda_structs.cuh", IbgdaStructs.HEADER)
                    .constant("kNicPut", PUT)
                    .constant("kNicPutSignal", PUT_SIGNAL)
                    .constant("kNicSignal", SIGNAL)
                    .constant("kNicQuiet", QUIET)
                    .struct(COMMAND)
                    .struct(SCRIPT)
                    .struct(EXCHANGE);

    private NicCheckStructs() {}
}
