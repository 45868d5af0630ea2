package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Placement;
import io.deepep.spi.RowFormat;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.oracle.Traffic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Bytes of normal-mode operations, from the oracle's traffic. */
final class NormalBytes {
    private final int hidden;
    private final List<Traffic> traffic = new ArrayList<>();
    private final List<Integer> received = new ArrayList<>();
    private long tokens;
    private final long busiestLinkRows;

    NormalBytes(Job job, NormalWorkload workload) {
        hidden = job.hidden();
        for (int rank = 0; rank < job.numRanks(); rank++) {
            traffic.add(Traffic.normal(workload.routing(), job.topology(), rank));
            received.add(workload.oracle().rows(rank).size());
            tokens += workload.routing().numTokens(rank);
        }
        busiestLinkRows = busiestLinkRows(job.placement(), workload.oracle());
    }

    /**
     * Rows that the ranks of the busiest GPU send to other ranks, or receive from them if these are
     * more. A single rank has only itself.
     */
    private static long busiestLinkRows(Placement placement, NormalOracle oracle) {
        int numRanks = oracle.routing().numRanks();
        Map<Object, long[]> sentAndReceived = new HashMap<>();
        for (int rank = 0; rank < numRanks; rank++) {
            // Ranks of the host count one by one.
            Object place = placement.isCuda() ? placement.device(rank) : (Object) rank;
            long[] sums = sentAndReceived.computeIfAbsent(place, first -> new long[2]);
            int[] sent = oracle.tokensPerRank(rank);
            int own = numRanks > 1 ? sent[rank] : 0;
            sums[0] += Arrays.stream(sent).sum() - own;
            sums[1] += oracle.rows(rank).size() - own;
        }
        return sentAndReceived.values().stream().flatMapToLong(Arrays::stream).max().orElseThrow();
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
        return received.get(rank);
    }

    /** What {@code rank}'s tokens send. */
    Traffic traffic(int rank) {
        return traffic.get(rank);
    }

    /** All ranks' bytes of a dispatch; a combine takes the same ways back. */
    OperationBytes total(DType dtype) {
        Traffic all = traffic.stream().reduce(new Traffic(0, 0), Traffic::plus);
        long rows = received.stream().mapToLong(Integer::longValue).sum();
        long row = rowBytes(dtype);
        return new OperationBytes(
                rows * row, all.nvlinkRows() * row, all.rdmaRows() * row, (tokens + rows) * row);
    }
}
