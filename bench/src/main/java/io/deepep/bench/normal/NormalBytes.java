package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Job;
import io.deepep.testkit.oracle.Traffic;
import java.util.ArrayList;
import java.util.List;

/** Bytes of normal-mode operations, from the oracle's traffic. */
final class NormalBytes {
    private final int hidden;
    private final List<Traffic> traffic = new ArrayList<>();
    private final List<Integer> received = new ArrayList<>();
    private long tokens;

    NormalBytes(Job job, NormalWorkload workload) {
        hidden = job.hidden();
        for (int rank = 0; rank < job.numRanks(); rank++) {
            traffic.add(Traffic.normal(workload.routing(), job.topology(), rank));
            received.add(workload.oracle().rows(rank).size());
            tokens += workload.routing().numTokens(rank);
        }
    }

    /** Bytes of a row: elements, then scales of FP8. */
    long rowBytes(DType dtype) {
        return dtype == DType.FP8_E4M3
                ? hidden + 4L * (hidden / Fp8E4m3.CHANNELS_PER_SCALE)
                : (long) dtype.sizeBytes() * hidden;
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
