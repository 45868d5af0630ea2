package io.deepep.bench.cuda;

import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.Graph;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.RankTeam;

/** What an operation enqueues, captured once on every rank and replayed as a graph. */
public final class GraphOperation implements CollectiveCall, AutoCloseable {
    private final CudaStopwatch stopwatch;
    private final PerRank<Graph> graphs;

    /** Captures an operation that has been called before. */
    public GraphOperation(RankTeam team, CudaStopwatch stopwatch, CollectiveCall operation) {
        this.stopwatch = stopwatch;
        this.graphs = PerRank.open(team, rank -> capture(rank, operation));
    }

    private Graph capture(int rank, CollectiveCall operation) {
        return Graph.capture(
                stopwatch.stream(rank), () -> operation.call(rank, CallOptions.async()));
    }

    @Override
    public Event call(int rank, CallOptions options) {
        graphs.get(rank).replay();
        return stopwatch.stream(rank).record();
    }

    @Override
    public void close() {
        graphs.close();
    }
}
