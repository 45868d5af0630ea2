package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;

/** For tests to which it does not matter what is exchanged: 4 tokens, all for the first expert. */
final class SmallExchange {
    static final int NUM_TOKENS = 4;
    private static final int HIDDEN = 128;
    private static final int NUM_EXPERTS = 2;

    private SmallExchange() {}

    static Buffer.Builder builder(Communicator communicator) {
        return Buffer.builder(communicator)
                .normal(NormalLimits.of(NUM_TOKENS, HIDDEN, 1, NUM_EXPERTS));
    }

    static DispatchPlan.Builder plan() {
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.BF16, NUM_TOKENS, HIDDEN);
        Tensor topkIdx = Tensor.allocate(Arena.ofAuto(), DType.I64, NUM_TOKENS, 1);
        return DispatchPlan.builder(x).topk(topkIdx, null, NUM_EXPERTS);
    }
}
