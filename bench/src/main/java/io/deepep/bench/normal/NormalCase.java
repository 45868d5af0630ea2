package io.deepep.bench.normal;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineRequest;
import io.deepep.CombineResult;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.OracleMismatch;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** One variant on one workload: dispatch, check, combine, check, on all ranks. */
final class NormalCase implements Case {
    private final Session session;
    private final NormalWorkload workload;
    private final TokenPool pool;
    private final NormalVariant variant;
    private final int worstRows;
    private long nanos;

    /**
     * A case.
     *
     * @param worstRows rows that a result has in worst-case mode
     */
    NormalCase(
            Session session,
            NormalWorkload workload,
            TokenPool pool,
            NormalVariant variant,
            int worstRows) {
        this.session = session;
        this.workload = workload;
        this.pool = pool;
        this.variant = variant;
        this.worstRows = worstRows;
    }

    @Override
    public String name() {
        return variant.name();
    }

    @Override
    public long run() {
        nanos = 0;
        List<DispatchRequest> requests = session.team().ask(this::request);
        List<DispatchResult> received = dispatch(requests, check());
        if (variant.has(Feature.CACHED)) {
            received = dispatch(cached(received), check().withoutTopk());
        }
        List<DispatchResult> toCombine = received;
        List<Tensor> outputs = session.team().ask(rank -> outputs(rank, toCombine.get(rank)));
        List<CombineRequest> combines =
                session.team().ask(rank -> combine(rank, toCombine.get(rank), outputs.get(rank)));
        List<CombineResult> combined = combine(combines, outputs, received);
        if (variant.has(Feature.REPEAT)) {
            repeat(requests, received, combines, combined, outputs);
        }
        return nanos;
    }

    private DispatchRequest request(int rank) {
        Buffer buffer = session.buffer(rank);
        DispatchRequest.Builder builder =
                bare(rank)
                        .expertAlignment(variant.alignment())
                        .expanded(variant.has(Feature.EXPANDED))
                        .numWorstTokens(variant.has(Feature.WORST_CASE) ? worstRows : 0);
        int numExperts = workload.routing().numExperts();
        if (variant.has(Feature.TOPK)) {
            builder.topk(workload.topkIdx(rank), workload.topkWeights(rank), numExperts);
        } else {
            builder.layout(buffer.getDispatchLayout(workload.topkIdx(rank), numExperts));
        }
        return builder.build();
    }

    private DispatchRequest.Builder bare(int rank) {
        Tokens tokens = workload.tokens(variant.dtype()).get(rank);
        return DispatchRequest.builder(tokens.x())
                .scales(tokens.scales())
                .receive(
                        variant.has(Feature.COPY)
                                ? DispatchRequest.Receive.COPY
                                : DispatchRequest.Receive.VIEW);
    }

    private List<DispatchRequest> cached(List<DispatchResult> first) {
        return session.team().ask(rank -> bare(rank).handle(first.get(rank).handle()).build());
    }

    private List<DispatchResult> dispatch(
            List<DispatchRequest> requests, NormalDispatchCheck check) {
        List<DispatchResult> results =
                timed(
                        rank -> {
                            DispatchResult result =
                                    session.buffer(rank)
                                            .dispatch(requests.get(rank), options(rank));
                            result.event().synchronize();
                            return result;
                        });
        session.team().run(rank -> check.check(rank, results.get(rank), UnaryOperator.identity()));
        return results;
    }

    private NormalDispatchCheck check() {
        NormalDispatchCheck check = workload.check(variant.dtype());
        check =
                variant.has(Feature.EXPANDED)
                        ? check.expanded(variant.alignment())
                        : check.aligned(variant.alignment());
        check = variant.has(Feature.WORST_CASE) ? check.worstCase(worstRows) : check;
        return variant.has(Feature.TOPK) ? check : check.withoutTopk();
    }

    /** What this rank's experts give back for the rows it received. */
    private Tensor outputs(int rank, DispatchResult received) {
        if (variant.has(Feature.COMBINE_IN_PLACE)) {
            return received.recvX();
        }
        Tensor own = pool.outputs(rank, received.numRecvTokens());
        if (!variant.has(Feature.COMBINE_BUFFER)) {
            return own;
        }
        Tensor inside = session.buffer(rank).getCombineBuffer(received.handle());
        Rows.copy(own, inside, received.numRecvTokens());
        return inside;
    }

    private CombineRequest combine(int rank, DispatchResult received, Tensor outputs) {
        CombineRequest.Builder builder = CombineRequest.builder(outputs, received.handle());
        int numTokens = workload.routing().numTokens(rank);
        if (variant.has(Feature.WEIGHTS)) {
            builder.topkWeights(received.recvTopkWeights());
        }
        if (variant.has(Feature.TWO_BIASES)) {
            builder.bias(pool.bias(rank, 0, numTokens), pool.bias(rank, 1, numTokens));
        } else if (variant.has(Feature.BIAS)) {
            builder.bias(pool.bias(rank, 0, numTokens));
        }
        if (variant.has(Feature.OUT)) {
            builder.out(Rows.expertOutputs(numTokens, session.job().hidden(), rank));
        }
        return builder.build();
    }

    private List<CombineResult> combine(
            List<CombineRequest> requests, List<Tensor> outputs, List<DispatchResult> received) {
        List<CombineResult> results =
                timed(
                        rank -> {
                            CombineResult result =
                                    session.buffer(rank).combine(requests.get(rank), options(rank));
                            result.event().synchronize();
                            return result;
                        });
        int nodeSize = session.job().topology().numNvlRanks();
        NormalCombineOracle oracle =
                variant.has(Feature.EXPANDED)
                        ? NormalCombineOracle.ofExpanded(
                                workload.oracle(), nodeSize, variant.alignment())
                        : NormalCombineOracle.of(workload.oracle(), nodeSize);
        List<Tensor> weights = received.stream().map(DispatchResult::recvTopkWeights).toList();
        session.team()
                .run(
                        rank -> {
                            CombineResult result = results.get(rank);
                            oracle.check(rank, outputs, biases(rank), result.x());
                            if (variant.has(Feature.WEIGHTS)) {
                                oracle.checkWeights(rank, weights, result.topkWeights());
                            }
                        });
        return results;
    }

    private List<Tensor> biases(int rank) {
        int number = variant.has(Feature.TWO_BIASES) ? 2 : variant.has(Feature.BIAS) ? 1 : 0;
        List<Tensor> biases = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            biases.add(pool.bias(rank, i, workload.routing().numTokens(rank)));
        }
        return biases;
    }

    /** Dispatches and combines once more; both must give the bits that they gave before. */
    private void repeat(
            List<DispatchRequest> requests,
            List<DispatchResult> received,
            List<CombineRequest> combines,
            List<CombineResult> combined,
            List<Tensor> outputs) {
        List<Long> before = fingerprints(received, combined);
        List<DispatchResult> again = dispatch(requests, check());
        List<CombineResult> combinedAgain = combine(combines, outputs, again);
        List<Long> after = fingerprints(again, combinedAgain);
        for (int rank = 0; rank < before.size(); rank++) {
            if (!before.get(rank).equals(after.get(rank))) {
                throw new OracleMismatch(
                        "rank " + rank + ": the second run gave other bits than the first");
            }
        }
    }

    private List<Long> fingerprints(List<DispatchResult> received, List<CombineResult> combined) {
        return session.team()
                .ask(
                        rank -> {
                            DispatchResult result = received.get(rank);
                            Tensor home = combined.get(rank).x();
                            return 31 * Rows.fingerprint(result.recvX(), result.numRecvTokens())
                                    + Rows.fingerprint(home, home.size(0));
                        });
    }

    private CallOptions options(int rank) {
        CallOptions options = variant.has(Feature.ASYNC) ? CallOptions.async() : CallOptions.sync();
        return variant.has(Feature.PREVIOUS_EVENT)
                ? options.after(Buffer.capture(session.buffer(rank).communicationStream()))
                : options;
    }

    private <T> List<T> timed(RankTeam.Question<T> call) {
        List<T> answers = session.team().ask(call);
        nanos += session.team().slowestNanos();
        return answers;
    }
}
