package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.host.HostStream;
import java.lang.foreign.Arena;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An interrupt that leaves an asynchronous call half done takes the buffer out of use. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class InterruptedCallTest {
    @Test
    void whileItWaitsForCounts() {
        CountDownLatch gate = new CountDownLatch(1);
        try (InProcessGroup group = InProcessGroup.of(1);
                Buffer buffer =
                        Buffer.builder(group.communicator(0))
                                .normal(NormalLimits.of(4, 128, 1, 2))
                                .open()) {
            Tensor tokens = Tensor.allocate(Arena.ofAuto(), DType.BF16, 4, 128);
            Tensor topk = Tensor.allocate(Arena.ofAuto(), DType.I64, 4, 1);
            DispatchPlan exact = DispatchPlan.builder(tokens).topk(topk, null, 2).build();
            ((HostStream) buffer.communicationStream())
                    .submit(
                            () -> {
                                try {
                                    gate.await();
                                } catch (InterruptedException impossible) {
                                    throw new IllegalStateException(impossible);
                                }
                            });
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> buffer.dispatch(exact, CallOptions.async()))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("interrupted");
            assertThat(Thread.interrupted()).isTrue();
            gate.countDown();
            assertThatThrownBy(() -> buffer.dispatch(exact))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("failed earlier")
                    .hasRootCauseInstanceOf(InterruptedException.class);
        } finally {
            gate.countDown();
        }
    }
}
