package io.deepep.bench.measure;

import io.deepep.bench.run.Job;
import io.deepep.bench.text.TextTable;
import io.deepep.testkit.oracle.Traffic;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** What each rank's rows take over each kind of link: a line for each rank. */
public final class TrafficTable {
    private static final double MEGA = 1e6;

    private final Job job;
    private final long rowBytes;
    private final TextTable<Integer> table;

    /** With the tokens of each rank, as yet. */
    public TrafficTable(Job job, long rowBytes) {
        this.job = job;
        this.rowBytes = rowBytes;
        this.table =
                new TextTable<Integer>()
                        .right("rank", Object::toString)
                        .number("tokens", "%.0f", rank -> job.routing().numTokens(rank));
    }

    /** Adds a column of rows. */
    public TrafficTable rows(String name, IntFunction<Integer> rows) {
        table.number(name, "%.0f", rows::apply);
        return this;
    }

    /** Adds two columns, of megabytes over NVLink and over RDMA. */
    public TrafficTable links(String way, IntFunction<Traffic> traffic) {
        table.number(
                "NVLink MB " + way,
                "%.2f",
                rank -> traffic.apply(rank).nvlinkRows() * rowBytes / MEGA);
        table.number(
                "RDMA MB " + way, "%.2f", rank -> traffic.apply(rank).rdmaRows() * rowBytes / MEGA);
        return this;
    }

    /** The lines. */
    public String text() {
        return table.of(IntStream.range(0, job.numRanks()).boxed().toList());
    }
}
