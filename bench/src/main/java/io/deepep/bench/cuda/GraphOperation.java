package io.deepep.bench.cuda;

import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.RankTeam;
import io.deepep.cuda.CudaGraph;

/** What an operation enqueues, captured once on every rank and replayed as a graph. */
public final class GraphOperation implements CollectiveCall, AutoCloseable {
    private final CudaStopwatch stopwatch;
    private final PerRank<CudaGraph> graphs;

    /** Captures an operation that has been called before. */
    public GraphOperation(RankTeam team, CudaStopwatch stopwatch, CollectiveCall operation) {
        this.stopwatch = stopwatch;
        this.graphs = PerRank.open(team, rank -> capture(rank, operation));
    }

    private CudaGraph capture(int rank, CollectiveCall operation) {
        CudaGraph graph =
                CudaGraph.capture(
                        stopwatch.stream(rank), () -> operation.call(rank, CallOptions.async()));
        graph.upload(stopwatch.stream(rank));
        return graph;
    }

    @Override
    public Event call(int rank, CallOptions options) {
        graphs.get(rank).launch(stopwatch.stream(rank));
        return stopwatch.stream(rank).record();
    }

    @Override
    public void close() {
        graphs.close();
    }
}
