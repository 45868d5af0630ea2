package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.spi.RowFormat;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Routing;
import java.util.List;
import java.util.stream.IntStream;

/** Bytes of normal-mode operations, from the oracle's traffic. */
final class NormalBytes {
    private final int hidden;
    private final List<Traffic> traffic;
    private final int[] received;
    private final long tokens;
    private final long busiestLinkRows;

    NormalBytes(Job job) {
        Routing routing = job.routing();
        hidden = job.hidden();
        traffic =
                IntStream.range(0, job.numRanks())
                        .mapToObj(rank -> Traffic.normal(routing, job.topology(), rank))
                        .toList();
        received = routing.receivedTokens();
        tokens = IntStream.range(0, job.numRanks()).mapToLong(routing::numTokens).sum();
        busiestLinkRows = job.placement().busiestRows(routing.tokensPerRank());
    }

    /** Bytes of a row: elements, then scales of FP8. */
    long rowBytes(DType dtype) {
        return new RowFormat(dtype, hidden).dataBytes();
    }

    /** Bytes of a row as GPUs send it: it begins and ends on a line. */
    long wireRowBytes(DType dtype) {
        return new RowFormat(dtype, hidden).strideBytes();
    }

    /** Bytes between the busiest GPU's ranks and all others, one way, as GPUs send rows. */
    long busiestLinkBytes(DType dtype) {
        return busiestLinkRows * wireRowBytes(dtype);
    }

    /** Rows that {@code rank} receives. */
    int received(int rank) {
        return received[rank];
    }

    /** What {@code rank}'s tokens send. */
    Traffic traffic(int rank) {
        return traffic.get(rank);
    }

    /** All ranks' bytes of a dispatch. */
    OperationBytes dispatch(DType dtype) {
        return total(dtype, (tokens + rows()) * rowBytes(dtype));
    }

    /**
     * All ranks' bytes of a combine, which takes the same ways back. Its tokens are BF16.
     *
     * @param given of the rows that experts computed
     * @param sent of the rows as they travel
     */
    OperationBytes combine(DType given, DType sent) {
        return total(sent, rows() * rowBytes(given) + tokens * rowBytes(DType.BF16));
    }

    private OperationBytes total(DType sent, long moved) {
        Traffic all = traffic.stream().reduce(new Traffic(0, 0), Traffic::plus);
        long row = rowBytes(sent);
        return new OperationBytes(
                rows() * row, all.nvlinkRows() * row, all.rdmaRows() * row, moved);
    }

    private long rows() {
        return IntStream.of(received).asLongStream().sum();
    }
}
