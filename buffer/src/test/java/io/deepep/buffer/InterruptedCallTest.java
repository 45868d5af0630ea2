package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DispatchPlan;
import io.deepep.InProcessGroup;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An interrupt that leaves an asynchronous call half done takes the buffer out of use. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class InterruptedCallTest {
    @Test
    void whileItWaitsForCounts() {
        try (InProcessGroup group = InProcessGroup.of(1);
                Buffer buffer = SmallExchange.builder(group.communicator(0)).open()) {
            DispatchPlan exact = SmallExchange.plan().build();
            Runnable release = HostTestStream.hold(buffer.communicationStream());
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> buffer.dispatch(exact, CallOptions.async()))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("interrupted");
            assertThat(Thread.interrupted()).isTrue();
            release.run();
            assertThatThrownBy(() -> buffer.dispatch(exact))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("failed earlier")
                    .hasRootCauseInstanceOf(InterruptedException.class);
        }
    }
}
