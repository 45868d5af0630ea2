package io.deepep.bench.measure;

/**
 * Bytes of one operation, summed over all ranks: elements and scales, without indices, weights and
 * flags.
 *
 * @param logical what DeepEP counts: the rows that all ranks receive (normal), or one row for each
 *     selection (low latency)
 * @param nvlink what crosses between ranks of a node
 * @param rdma what crosses between nodes
 * @param moved the least that must be read from and written to memory: every input row once, every
 *     output row once
 */
public record OperationBytes(long logical, long nvlink, long rdma, long moved) {
    /** What crosses any link. */
    public long wire() {
        return nvlink + rdma;
    }
}
