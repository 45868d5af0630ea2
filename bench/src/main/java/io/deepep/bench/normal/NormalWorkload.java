package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
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
    private final List<Tokens> bf16 = new ArrayList<>();
    private final List<Tokens> fp8 = new ArrayList<>();
    private final List<Tensor> topkIdx = new ArrayList<>();
    private final List<Tensor> topkWeights = new ArrayList<>();

    /** A workload with the first tokens of {@code pool}. */
    NormalWorkload(Routing routing, TokenPool pool) {
        this.routing = routing;
        this.oracle = new NormalOracle(routing);
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            int numTokens = routing.numTokens(rank);
            bf16.add(TokenPool.first(pool.bf16(rank), numTokens));
            if (pool.fp8(rank) != null) {
                fp8.add(TokenPool.first(pool.fp8(rank), numTokens));
            }
            topkIdx.add(HostTensors.i64(routing.topkIdx(rank), routing.numTopk()));
            topkWeights.add(HostTensors.f32(routing.weights(rank), routing.numTopk()));
        }
    }

    Routing routing() {
        return routing;
    }

    NormalOracle oracle() {
        return oracle;
    }

    List<Tokens> tokens(DType dtype) {
        return dtype == DType.FP8_E4M3 ? fp8 : bf16;
    }

    Tensor topkIdx(int rank) {
        return topkIdx.get(rank);
    }

    Tensor topkWeights(int rank) {
        return topkWeights.get(rank);
    }

    NormalDispatchCheck check(DType dtype) {
        return NormalDispatchCheck.of(oracle, tokens(dtype));
    }

    /** The most rows that any rank receives. */
    int maxRecvTokens() {
        int most = 0;
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            most = Math.max(most, oracle.rows(rank).size());
        }
        return most;
    }
}
