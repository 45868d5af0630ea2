package io.deepep.planner;

/** Which rows a token's selections turn into. */
public enum RowRule {
    /**
     * Over RDMA once for each other node, to the rank with the sender's nvlRank there; from the
     * rank that has it in a node over NVLink once for each other destination rank of that node.
     */
    NODE_THEN_RANK,
    /** Once for each other destination rank, over NVLink within the node, else over RDMA. */
    ONCE_PER_RANK,
    /** Once for each selection of another rank's expert, over the same links. */
    ONCE_PER_SELECTION
}
