package io.deepep.normal.cuda.kernels;

import io.deepep.cuda.ibgda.IbgdaStructs;
import io.deepep.cuda.kernel.KernelHeader;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;

/**
 * What the normal kernels across nodes and Java share beside {@link NormalStructs}: the definition
 * of {@code internode_structs.cuh}.
 */
public final class InternodeStructs {
    public static final KernelStruct INTERNODE =
            KernelStruct.builder("Internode", "What lies between nodes, and the routing.")
                    .struct("network", NetworkStructs.NETWORK)
                    .struct("headers", NetworkStructs.CELLS)
                    .struct("header_flags", NetworkStructs.CELLS)
                    .struct("records", NetworkStructs.CELLS)
                    .struct("record_flags", NetworkStructs.CELLS)
                    .struct("slots", NetworkStructs.CELLS)
                    .struct("tails", NetworkStructs.CELLS)
                    .struct("totals", NetworkStructs.CELLS)
                    .struct("heads", NetworkStructs.CELLS)
                    .struct("endings", NetworkStructs.CELLS)
                    .u64("header_bytes", "from a header to that of the other parity")
                    .u64("plan", "Plan, zeroed once by the host")
                    .u64("block_counts", "i32 [blocks][num_nodes][node_places] workspace")
                    .u64("block_bases", "i32 [blocks][num_nodes][node_places] workspace")
                    .u64("own_rows", "NodeRows [num_nodes][num_tokens]: written; read if cached")
                    .u64("forward_rows", "NodeRows [cells][max_tokens]: written; read by combine")
                    .u64(
                            "source_tokens",
                            "i32 [cells]: tokens of each home: written; read by combine")
                    .i32("max_tokens", "")
                    .i32("num_ranks", "of all nodes")
                    .i32("record_bytes", "a multiple of 16")
                    .i32("slot_bytes", "a multiple of 16")
                    .i32("num_channels", "rings for each peer")
                    .i32("num_slots", "of a ring, a multiple of send_chunk, at least twice that")
                    .i32("send_chunk", "rows put, or taken, before the peer is told")
                    .i32("num_home_blocks", "combine: the first blocks, see CombineRoles")
                    .i32("node_places", "words of NodeRows; read in large nodes")
                    .i32("reserved", "")
                    .build();

    public static final KernelStruct PLAN =
            KernelStruct.builder("Plan", "What one block concludes for all blocks of its rank.")
                    .u64("verdict", "epoch | code << 32")
                    .i32("num_rows", "dispatch: rows that this rank receives")
                    .i32("ends_together", "all nodes tell each other how the call ended")
                    .build();

    public static final KernelStruct RAIL_WAY =
            KernelStruct.builder("RailWay", "How another rank is reached.")
                    .u64(
                            "reach",
                            "its network memory as mapped here, or IbgdaQueues that lead to it")
                    .i32("place", "of it in these, or its number in a library's world")
                    .i32("reserved", "")
                    .build();

    public static final KernelStruct RAIL_END =
            KernelStruct.builder("RailEnd", "A rank that rows are exchanged with; see Rails.Ends.")
                    .struct("way", RAIL_WAY)
                    .i32("rank", "-1: none")
                    .i32("cell", "of its network memory, in which this rank writes")
                    .build();

    public static final KernelStruct RAIL_RANK =
            KernelStruct.builder("RailRank", "A rank; see Masks and Rails.")
                    .struct("way", RAIL_WAY)
                    .i32("is_masked", "")
                    .i32("is_reached", "by tokens of this rank")
                    .i32("is_contact", "of another node, and headers and endings are exchanged")
                    .i32("reserved", "")
                    .build();

    public static final KernelStruct RAIL_TABLE =
            KernelStruct.builder("RailTable", "Who serves whom while ranks may be masked.")
                    .u64("forwarders", "RailEnd [num_nodes]")
                    .u64("homes", "RailEnd [num_cells]")
                    .u64("ranks", "RailRank [num_ranks]")
                    .i32("num_nodes", "")
                    .i32("num_cells", "of rows in a rank's network memory")
                    .i32("num_ranks", "of all nodes")
                    .i32("own", "this rank")
                    .i32("first", "the lowest rank that is not masked")
                    .i32("ends_together", "all nodes tell each other how each call ended")
                    .build();

    private InternodeStructs() {}

    /** The parameters of a call across nodes: first those of one node. */
    static KernelStruct params(String name, String seeFile, KernelStruct local) {
        return KernelStruct.builder(name, "See %s.".formatted(seeFile))
                .struct("local", local)
                .struct("between", INTERNODE)
                .build();
    }

    /** The header of kernels that include that of one node. */
    static KernelHeader newHeader(NormalStructs structs, String include) {
        return new KernelHeader(
                        "deepep::normal", "deepep_internode_structs", InternodeStructs.class)
                .include("deepep/network_structs.cuh", NetworkStructs.HEADER)
                .include("deepep/ibgda_structs.cuh", IbgdaStructs.HEADER)
                .include(include, structs.header())
                .struct(INTERNODE)
                .struct(PLAN)
                .struct(structs.internodeDispatch)
                .struct(structs.internodeCombine)
                .struct(RAIL_WAY)
                .struct(RAIL_END)
                .struct(RAIL_RANK)
                .struct(RAIL_TABLE);
    }
}
