package io.deepep.cuda.ibgda;

import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.rdma.QueuePair;

/**
 * What kernels know of a rank's queue pairs: the definition of {@code deepep/ibgda_structs.cuh},
 * see {@code deepep/network_ibgda.cuh}.
 */
public final class IbgdaStructs {
    /** A queue pair and what the threads that share it have agreed on. */
    public static final KernelStruct QUEUE =
            KernelStruct.builder("IbgdaQueue", "A queue pair. Indices of blocks only grow.")
                    .u64("entries", "[num_blocks] of 64 bytes")
                    .u64("record", "doorbell record: u32 [2]")
                    .u64("doorbell", "u64: a register of the network card")
                    .u64("completion", "the latest completion, 64 bytes")
                    .u64("landing", "u64 that atomics return to, in network memory")
                    .u64("fault", "IbgdaFault, in mapped host memory")
                    .u64("reserved", "blocks handed out to writers")
                    .u64("ready", "blocks written")
                    .u64("rung", "blocks that the card knows of")
                    .u64("completed", "blocks known to be completed")
                    .u32("number", "24 bits")
                    .u32("failed", "1: nothing more is sent; the fault says why")
                    .u32("local_key", "of this rank's network memory")
                    .u32("remote_key", "of the peer's")
                    .build();

    /** The other end of queue pairs. */
    public static final KernelStruct PEER =
            KernelStruct.builder("IbgdaPeer", "A peer's network memory, as network cards name it.")
                    .u64("base", "")
                    .i32("rank", "for messages")
                    .u32("padding", "")
                    .build();

    /** All queue pairs of a rank. */
    public static final KernelStruct QUEUES =
            KernelStruct.builder("IbgdaQueues", "The queue pairs of a rank, in its memory.")
                    .u64("queues", "IbgdaQueue [num_nodes][queues_per_node]")
                    .u64("peers", "IbgdaPeer [num_nodes]")
                    .u64("timeout_ns", "how long to wait for the network card")
                    .u32("queues_per_node", "")
                    .u32("num_blocks", "of each queue: a power of two from 256 to 32768")
                    .u32("batch", "blocks after which a doorbell is rung in any case")
                    .u32("padding", "")
                    .build();

    /** Why a queue pair has failed. */
    public static final KernelStruct FAULT =
            KernelStruct.builder("IbgdaFault", "Why a queue pair has failed. `kind` comes last.")
                    .u32("kind", "kIbgda...")
                    .i32("peer", "rank")
                    .u32("queue", "its number")
                    .u32("syndrome", "of the completion")
                    .u32("vendor_syndrome", "")
                    .u32("entry", "the completion's 16 bits")
                    .u64("waited_for", "index of the block that had to be completed, or written")
                    .build();

    /** {@code deepep/ibgda_structs.cuh}. */
    public static final KernelHeader HEADER =
            new KernelHeader("deepep", null, IbgdaStructs.class)
                    .constant("kIbgdaBlockBytes", QueuePair.ENTRY_BYTES)
                    .constant("kIbgdaErrorCompletion", IbgdaFault.ERROR_COMPLETION)
                    .constant("kIbgdaNoRoom", IbgdaFault.NO_ROOM)
                    .constant("kIbgdaNoTurn", IbgdaFault.NO_TURN)
                    .constant("kIbgdaNoCompletion", IbgdaFault.NO_COMPLETION)
                    .struct(QUEUE)
                    .struct(PEER)
                    .struct(QUEUES)
                    .struct(FAULT);

    private IbgdaStructs() {}
}
