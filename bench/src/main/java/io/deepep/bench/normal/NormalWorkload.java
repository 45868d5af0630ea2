package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.NormalOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.List;

/** One routing with the tokens of every rank, and what the oracle makes of them. */
final class NormalWorkload {
    private final Routing routing;
    private final NormalOracle oracle;
    private final List<TokenPool.Placed> bf16 = new ArrayList<>();
    private final List<TokenPool.Placed> fp8 = new ArrayList<>();
    private final List<Tensor> topkIdx;
    private final List<Tensor> topkWeights;

    /** A workload with the first tokens of {@code pool}. */
    NormalWorkload(Session session, Routing routing, TokenPool pool) {
        this.routing = routing;
        this.oracle = new NormalOracle(routing);
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            int numTokens = routing.numTokens(rank);
            bf16.add(pool.tokens(rank, DType.BF16).first(numTokens));
            if (pool.tokens(rank, DType.FP8_E4M3) != null) {
                fp8.add(pool.tokens(rank, DType.FP8_E4M3).first(numTokens));
            }
        }
        topkIdx = session.ask(rank -> session.memory(rank).upload(routing.topkIdxTensor(rank)));
        topkWeights = session.ask(rank -> session.memory(rank).upload(routing.weightsTensor(rank)));
    }

    Routing routing() {
        return routing;
    }

    NormalOracle oracle() {
        return oracle;
    }

    /** A rank's tokens as its buffer gets them. */
    Tokens tokens(int rank, DType dtype) {
        return placed(dtype).get(rank).device();
    }

    /** On the rank's device. */
    Tensor topkIdx(int rank) {
        return topkIdx.get(rank);
    }

    /** On the rank's device. */
    Tensor topkWeights(int rank) {
        return topkWeights.get(rank);
    }

    NormalDispatchCheck check(DType dtype) {
        return NormalDispatchCheck.of(
                oracle, placed(dtype).stream().map(TokenPool.Placed::host).toList());
    }

    private List<TokenPool.Placed> placed(DType dtype) {
        return dtype == DType.FP8_E4M3 ? fp8 : bf16;
    }
}
