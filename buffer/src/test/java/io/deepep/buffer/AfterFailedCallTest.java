package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Event;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.RoutingException;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A call on the host that starts after one that failed: it comes after it, and is not refused. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AfterFailedCallTest {
    private static final int NUM_TOKENS = 3;
    private static final int NUM_EXPERTS = 2;

    @Test
    void failuresBelongToTheirOwnEvents() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(AfterFailedCallTest::callAfterFailedOne);
        }
    }

    /** One rank waits on its thread, the other leaves that to the stream. */
    private static void callAfterFailedOne(Communicator communicator) {
        try (Buffer buffer =
                Buffer.builder(communicator)
                        .normal(NormalLimits.of(NUM_TOKENS, 128, 1, NUM_EXPERTS))
                        .open()) {
            Tensor idx = Tensor.allocate(Arena.ofAuto(), DType.I64, NUM_TOKENS, 1);
            DispatchPlan good = plan(idx).build();
            Tensor badIdx = Tensor.allocate(Arena.ofAuto(), DType.I64, NUM_TOKENS, 1);
            badIdx.setLong(99, 0, 0);
            Event failed =
                    buffer.dispatch(
                                    plan(badIdx).numWorstTokens(2 * NUM_TOKENS).build(),
                                    CallOptions.async())
                            .event();
            CallOptions options =
                    communicator.rank() == 0 ? CallOptions.sync() : CallOptions.async();
            for (int call = 0; call < 2; call++) { // the failed one in flight, and over
                buffer.getDispatchLayout(idx, NUM_EXPERTS, options.after(failed));
                int rows = buffer.dispatch(good, options.after(failed)).numRecvTokens();
                assertThat(rows).isEqualTo(communicator.rank() == 0 ? 2 * NUM_TOKENS : 0);
            }
            assertThatThrownBy(failed::synchronize).isInstanceOf(RoutingException.class);
        }
    }

    private static DispatchPlan.Builder plan(Tensor topkIdx) {
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.BF16, NUM_TOKENS, 128);
        return DispatchPlan.builder(x).topk(topkIdx, null, NUM_EXPERTS);
    }
}
