package io.deepep.planner;

/** The rule by which the selections of a token become rows. */
public enum RowRule {
    /**
     * Over RDMA, one row for each other node, to the rank there that has the sender's nvlRank; then
     * over NVLink, one row from that rank to each other destination rank of the node.
     */
    NODE_THEN_RANK,
    /**
     * One row for each other destination rank, over NVLink within the node, otherwise over RDMA.
     */
    ONCE_PER_RANK,
    /**
     * One row for each selection of another rank's expert, over the same links as {@link
     * #ONCE_PER_RANK}.
     */
    ONCE_PER_SELECTION
}
