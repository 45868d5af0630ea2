package io.deepep.cuda.ibgda;

import io.deepep.cuda.kernel.KernelStruct.Params;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Where the device code of {@code nic_checks.cu} runs. */
interface NicDevice extends NicGroup.Tables, AutoCloseable {
    /** Zeroed memory that device, card and Java see at one address, aligned to 64. */
    MemorySegment allocate(long numBytes);

    /** Runs {@code deepep_nic_script} as one block. */
    void script(Params params);

    /** Runs {@code deepep_nic_exchange} on all nodes at once. */
    void exchange(List<Params> byNode, int numChannels);

    /** Lanes of a warp. */
    int numLanes();

    @Override
    void close();
}
