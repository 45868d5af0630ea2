package io.deepep.bench.lowlatency;

import io.deepep.Buffer;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Session;
import java.util.List;

/** Operations of low-latency mode with reused requests, as they are measured. */
final class LowLatencyOperations {
    private final Session session;
    private final LowLatencyWorkload workload;

    LowLatencyOperations(LowLatencySetup setup) {
        session = setup.session();
        workload = setup.verifier().workload();
    }

    private List<LowLatencyDispatchRequest> requests(LowLatencyFormat format) {
        return session.team()
                .ask(
                        rank ->
                                LowLatencyDispatchRequest.builder(
                                                workload.x(rank), workload.topkIdx(rank))
                                        .format(format)
                                        .build());
    }

    RankTeam.Work dispatch(LowLatencyFormat format) {
        List<LowLatencyDispatchRequest> requests = requests(format);
        return rank -> session.buffer(rank).lowLatencyDispatch(requests.get(rank));
    }

    /** Combine of BF16 rows. Dispatches once, for the handles. */
    RankTeam.Work combine(boolean zeroCopy, boolean logFmt) {
        List<LowLatencyDispatchRequest> requests = requests(LowLatencyFormat.BF16);
        List<LowLatencyCombineRequest> combines =
                session.team()
                        .ask(
                                rank -> {
                                    Buffer buffer = session.buffer(rank);
                                    LowLatencyDispatchResult received =
                                            buffer.lowLatencyDispatch(requests.get(rank));
                                    Tensor input = workload.outputs(rank);
                                    if (zeroCopy) {
                                        input =
                                                buffer.getNextLowLatencyCombineBuffer(
                                                        received.handle());
                                        workload.copyOutputs(rank, input);
                                    }
                                    return LowLatencyCombineRequest.builder(
                                                    input,
                                                    workload.topkIdx(rank),
                                                    workload.topkWeights(rank),
                                                    received.handle())
                                            .zeroCopy(zeroCopy)
                                            .logFmt(logFmt)
                                            .build();
                                });
        return rank -> session.buffer(rank).lowLatencyCombine(combines.get(rank));
    }
}
