package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.DispatchRequest;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Asynchronous calls of the host backend refuse memory that the calling thread alone may touch. */
@Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConfinedTensorTest {
    private static final int NUM_TOKENS = 3;
    private static final int HIDDEN = 128;
    private static final int NUM_EXPERTS = 2;

    private interface Calls {
        void make(Buffer buffer, Arena confined, Arena shared);
    }

    private static void run(Calls calls) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        try (Arena confined = Arena.ofConfined();
                                Arena shared = Arena.ofShared();
                                Buffer buffer =
                                        Buffer.builder(communicator)
                                                .normal(
                                                        NormalLimits.of(
                                                                NUM_TOKENS, HIDDEN, 1, NUM_EXPERTS))
                                                .lowLatency(
                                                        new LowLatencyLimits(
                                                                NUM_TOKENS, HIDDEN, NUM_EXPERTS, 1))
                                                .open()) {
                            calls.make(buffer, confined, shared);
                        }
                    });
        }
    }

    private static Tensor x(Arena arena) {
        return Tensor.allocate(arena, DType.BF16, NUM_TOKENS, HIDDEN);
    }

    private static Tensor topkIdx(Arena arena) {
        return Tensor.allocate(arena, DType.I64, NUM_TOKENS, 1);
    }

    /** Also by a request that synchronous calls have used, and goes on with those. */
    @Test
    void isRefusedByName() throws InterruptedException {
        run(
                (buffer, confined, shared) -> {
                    DispatchRequest request =
                            DispatchRequest.builder(x(shared))
                                    .topk(topkIdx(confined), null, NUM_EXPERTS)
                                    .build();
                    buffer.dispatch(request);
                    assertThatThrownBy(() -> buffer.dispatch(request, CallOptions.async()))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("topkIdx is ")
                            .hasMessageContaining("Arena.ofShared()");
                    assertThat(buffer.dispatch(request).recvX().size(0)).isEqualTo(NUM_TOKENS);
                });
    }

    @Test
    void isRefusedInLowLatencyMode() throws InterruptedException {
        run(
                (buffer, confined, shared) -> {
                    LowLatencyDispatchRequest request =
                            LowLatencyDispatchRequest.builder(x(confined), topkIdx(shared))
                                    .format(LowLatencyFormat.BF16)
                                    .build();
                    assertThatThrownBy(
                                    () -> buffer.lowLatencyDispatch(request, CallOptions.async()))
                            .isInstanceOf(IllegalArgumentException.class)
                            .hasMessageContaining("x is ");
                });
    }

    @Test
    void memoryOfAllThreadsIsTaken() throws InterruptedException {
        run(
                (buffer, _, shared) -> {
                    DispatchRequest request =
                            DispatchRequest.builder(x(Arena.ofAuto()))
                                    .topk(topkIdx(shared), null, NUM_EXPERTS)
                                    .build();
                    buffer.dispatch(request, CallOptions.async()).event().synchronize();
                });
    }
}
