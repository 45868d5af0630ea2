package io.deepep.normal.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;

/** Small calls that are right, for tests to spoil. */
final class GoodCalls {
    static final int HIDDEN = 64;
    static final int NUM_TOKENS = 6;
    static final int NUM_TOPK = 2;

    private GoodCalls() {}

    static DispatchPlan.Builder plan(int rank, int numRanks, int numExperts) {
        Tensor x = HostTensors.allocate(DType.BF16, NUM_TOKENS, HIDDEN);
        return DispatchPlan.builder(x).topk(topkIdx(rank, numRanks), null, numExperts);
    }

    /** Token t selects the first expert of rank t and of the rank after. */
    static Tensor topkIdx(int rank, int numRanks) {
        Tensor topkIdx = HostTensors.allocate(DType.I64, NUM_TOKENS, NUM_TOPK);
        for (int token = 0; token < NUM_TOKENS; token++) {
            topkIdx.setLong((token + rank) % numRanks * 2L, token, 0);
            topkIdx.setLong((token + rank + 1) % numRanks * 2L, token, 1);
        }
        return topkIdx;
    }

    static void expectWorks(Rank rank, int numRanks) {
        DispatchResult got = rank.dispatch(plan(rank.rank(), numRanks, 2 * numRanks));
        assertThat(got.numRecvTokens()).isPositive();
        rank.combine(CombinePlan.builder(got.recvX(), got.handle()));
    }

    /** The limits that just suffice. */
    static NormalLimits limits() {
        return NormalLimits.of(NUM_TOKENS, HIDDEN, NUM_TOPK, 16);
    }
}
