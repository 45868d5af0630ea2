package io.deepep.planner;

/**
 * What one operation moves and how long it takes.
 *
 * @param nvlink bytes over NVLink
 * @param rdma bytes over RDMA
 * @param bottleneck what the slowest rank waits for
 * @param typicalMicros time of a rank with the mean load
 * @param slowestMicros time of the busiest rank
 */
public record OperationPlan(
        Op op,
        LinkBytes nvlink,
        LinkBytes rdma,
        Bottleneck bottleneck,
        double typicalMicros,
        double slowestMicros) {
    /**
     * Puts per second of a GPU that drives its NIC itself, as NVIDIA published for NVSHMEM with
     * IBGDA ("Improving Network Performance of HPC Systems Using NVIDIA Magnum IO NVSHMEM and
     * GPUDirect Async"): smaller messages cost as much as that many.
     */
    private static final double MESSAGES_PER_SECOND = 180e6;

    /** What limits the speed of an operation. */
    public enum Bottleneck {
        /** The bytes over NVLink. */
        NVLINK,
        /** The bytes over RDMA. */
        RDMA,
        /** The fixed time, which exceeds that of the bytes. */
        LATENCY;

        @Override
        public String toString() {
            return switch (this) {
                case NVLINK -> "NVLink";
                case RDMA -> "RDMA";
                case LATENCY -> "latency";
            };
        }
    }

    /**
     * Bytes of a rank over one kind of link, in one direction.
     *
     * @param rows of all tokens
     * @param payloadMean elements and scales of rows, mean over the ranks
     * @param mean everything that travels, mean over the ranks
     * @param max everything that the busiest rank sends or receives, whichever is more; if ranks
     *     have different numbers of tokens, with the records of the rank that has most
     */
    public record LinkBytes(LinkLoad rows, double payloadMean, double mean, double max) {
        /**
         * Of one kind of link.
         *
         * @param recordBytes bytes of the records, mean and most
         */
        static LinkBytes of(
                LinkLoad rows,
                long payloadBytes,
                long rowBytes,
                long controlBytes,
                LinkLoad recordBytes) {
            return new LinkBytes(
                    rows,
                    rows.mean() * payloadBytes,
                    rows.mean() * rowBytes + controlBytes + recordBytes.mean(),
                    rows.max() * rowBytes + controlBytes + recordBytes.max());
        }
    }

    /** Plans one operation. */
    static OperationPlan of(
            Mode mode, Op op, Simulation simulation, WireFormat wire, Cluster cluster) {
        LinkRows rows = simulation.rows(op);
        double fraction = simulation.fraction();
        LinkBytes nvlink =
                LinkBytes.of(
                        LinkLoad.of(rows.nvlinkOut, rows.nvlinkIn, fraction),
                        wire.payloadBytes(),
                        wire.nvlinkRowBytes(),
                        wire.nvlinkControlBytes(),
                        new LinkLoad(0, 0));
        LinkBytes rdma =
                LinkBytes.of(
                        LinkLoad.of(rows.rdmaOut, rows.rdmaIn, fraction),
                        wire.payloadBytes(),
                        wire.rdmaRowBytes(),
                        wire.rdmaControlBytes(),
                        simulation.tokens().times(wire.rdmaRecordBytes()));
        LinkCost nvlinkCost = cluster.nvlink(mode, op);
        LinkCost rdmaCost = cluster.rdma(mode, op);
        double typicalRdma = rdmaMicros(rdmaCost, rdma.mean(), rdma.rows().mean(), wire);
        double slowestRdma = rdmaMicros(rdmaCost, rdma.max(), rdma.rows().max(), wire);
        double slowestNvlink = nvlinkCost.micros(nvlink.max());
        return new OperationPlan(
                op,
                nvlink,
                rdma,
                slowestRdma > slowestNvlink
                        ? bottleneck(Bottleneck.RDMA, rdmaCost, slowestRdma)
                        : bottleneck(Bottleneck.NVLINK, nvlinkCost, slowestNvlink),
                Math.max(nvlinkCost.micros(nvlink.mean()), typicalRdma),
                Math.max(slowestNvlink, slowestRdma));
    }

    private static Bottleneck bottleneck(Bottleneck link, LinkCost cost, double micros) {
        return cost.fixedMicros() > micros / 2 ? Bottleneck.LATENCY : link;
    }

    /**
     * Rows and control messages are a put each at most; puts too small to fill the NIC cost its
     * rate.
     */
    private static double rdmaMicros(LinkCost cost, double bytes, double rows, WireFormat wire) {
        double messages = rows + wire.rdmaControlMessages();
        double asBytes = messages / MESSAGES_PER_SECOND * cost.bytesPerSecond();
        return messages == 0 ? 0 : cost.micros(Math.max(bytes, asBytes));
    }
}
