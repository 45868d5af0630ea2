package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** One routing with the tokens of every rank, and what the oracle makes of them. */
final class NormalWorkload {
    private final Routing routing;
    private final NormalOracle oracle;
    private final Map<DType, List<TokenPool.Placed>> tokens = new EnumMap<>(DType.class);
    private final List<Tensor> topkIdx;
    private final List<Tensor> topkWeights;

    /** A workload with the first tokens of {@code pool}. */
    NormalWorkload(Session session, Routing routing, TokenPool pool) {
        this.routing = routing;
        this.oracle = new NormalOracle(routing);
        pool.tokens().forEach((dtype, all) -> tokens.put(dtype, first(all)));
        topkIdx = session.ask(rank -> session.memory(rank).upload(routing.topkIdxTensor(rank)));
        topkWeights = session.ask(rank -> session.memory(rank).upload(routing.weightsTensor(rank)));
    }

    Routing routing() {
        return routing;
    }

    NormalOracle oracle() {
        return oracle;
    }

    /** A dispatch of the rank's tokens. */
    DispatchPlan.Tokens dispatch(int rank, DType dtype) {
        Tokens device = tokens.get(dtype).get(rank).device();
        return DispatchPlan.builder(device.x(), device.scales());
    }

    /** A dispatch of the rank's tokens with its selections and weights. */
    DispatchPlan.Builder dispatchTopk(int rank, DType dtype) {
        return dispatch(rank, dtype)
                .topk(topkIdx.get(rank), topkWeights.get(rank), routing.numExperts());
    }

    /** On the rank's device. */
    Tensor topkIdx(int rank) {
        return topkIdx.get(rank);
    }

    NormalDispatchCheck check(DType dtype) {
        return NormalDispatchCheck.of(
                oracle, tokens.get(dtype).stream().map(TokenPool.Placed::host).toList());
    }

    /** A rank's tokens for the oracle, whichever process has it. */
    Tensor hostTokens(int rank, DType dtype) {
        return tokens.get(dtype).get(rank).host().x();
    }

    private List<TokenPool.Placed> first(List<TokenPool.Placed> all) {
        return IntStream.range(0, all.size())
                .mapToObj(rank -> all.get(rank).slice(0, routing.numTokens(rank)))
                .toList();
    }
}
