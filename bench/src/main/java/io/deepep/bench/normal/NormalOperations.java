package io.deepep.bench.normal;

import io.deepep.Buffer;
import io.deepep.CombineRequest;
import io.deepep.DType;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.routing.Tokens;
import java.util.List;

/** Operations of normal mode with reused requests, as they are measured. */
final class NormalOperations {
    private final Session session;
    private final TokenPool pool;
    private final NormalWorkload workload;
    private final List<DispatchRequest> bf16;
    private final List<DispatchRequest> fp8;

    NormalOperations(NormalSetup setup) {
        session = setup.session();
        pool = setup.pool();
        workload = setup.workload();
        bf16 = session.team().ask(rank -> request(rank, DType.BF16));
        fp8 =
                session.job().allowsFp8()
                        ? session.team().ask(rank -> request(rank, DType.FP8_E4M3))
                        : List.of();
    }

    private DispatchRequest request(int rank, DType dtype) {
        Tokens tokens = workload.tokens(dtype).get(rank);
        return DispatchRequest.builder(tokens.x())
                .scales(tokens.scales())
                .topk(
                        workload.topkIdx(rank),
                        workload.topkWeights(rank),
                        workload.routing().numExperts())
                .build();
    }

    /** Dispatch with top-k. */
    RankTeam.Work dispatch(DType dtype) {
        List<DispatchRequest> requests = dtype == DType.BF16 ? bf16 : fp8;
        return rank -> session.buffer(rank).dispatch(requests.get(rank));
    }

    /** Dispatch with the routing of an earlier one. Dispatches once, for the handles. */
    RankTeam.Work cachedDispatch() {
        List<DispatchResult> first =
                session.team().ask(rank -> session.buffer(rank).dispatch(bf16.get(rank)));
        List<DispatchRequest> requests =
                session.team()
                        .ask(
                                rank ->
                                        DispatchRequest.builder(
                                                        workload.tokens(DType.BF16).get(rank).x())
                                                .handle(first.get(rank).handle())
                                                .build());
        return rank -> session.buffer(rank).dispatch(requests.get(rank));
    }

    /**
     * Combine of BF16 rows. Dispatches once, for the handles.
     *
     * @param inBuffer whether the rows lie in the buffer's combine memory, else they are staged
     */
    RankTeam.Work combine(boolean inBuffer) {
        List<CombineRequest> requests =
                session.team()
                        .ask(
                                rank -> {
                                    Buffer buffer = session.buffer(rank);
                                    DispatchResult received = buffer.dispatch(bf16.get(rank));
                                    Tensor own = pool.outputs(rank, received.numRecvTokens());
                                    Tensor input = own;
                                    if (inBuffer) {
                                        input = buffer.getCombineBuffer(received.handle());
                                        Rows.copy(own, input, received.numRecvTokens());
                                    }
                                    return CombineRequest.builder(input, received.handle()).build();
                                });
        return rank -> session.buffer(rank).combine(requests.get(rank));
    }
}
