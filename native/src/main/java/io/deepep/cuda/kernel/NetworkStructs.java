package io.deepep.cuda.kernel;

/**
 * How kernels address the memory that ranks of different nodes share: the definition of {@code
 * deepep/network_structs.cuh}, see {@code deepep/network.cuh}.
 */
public final class NetworkStructs {
    /** A region of network memory with one cell for each node. */
    public static final KernelStruct CELLS =
            KernelStruct.builder("Cells", "One cell for each node, in network memory.")
                    .u64("offset", "of the cell of node 0, from the base of network memory")
                    .u64("stride", "bytes")
                    .build();

    /** A rank's network memory and its peers'. */
    public static final KernelStruct NETWORK =
            KernelStruct.builder("Network", "A rank and its peers on other nodes.")
                    .u64("base", "this rank's network memory")
                    .u64("peers", "u64 [num_nodes]: the peers' as mapped here; 0: not mapped")
                    .u64("outbox", "not mapped: bytes from a cell to where it is composed")
                    .u64("queues", "of a network card: IbgdaQueues")
                    .u64("rails", "where ranks may be masked: RailTable")
                    .i32("node", "of this rank")
                    .i32("num_nodes", "")
                    .i32("first_pe", "not mapped: the library's number of the peer on node 0")
                    .i32("pe_stride", "and from that to the peer on the next node")
                    .build();

    /** {@code deepep/network_structs.cuh}. */
    public static final KernelHeader HEADER =
            new KernelHeader("deepep", null, NetworkStructs.class).struct(CELLS).struct(NETWORK);

    private NetworkStructs() {}
}
