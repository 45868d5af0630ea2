package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class CallTimeoutsTest {
    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final Duration MINUTE = Duration.ofMinutes(1);
    private static final Duration HOUR = Duration.ofHours(1);

    private static DispatchPlan.Builder plan() {
        Tensor x = Tensor.allocate(Arena.ofAuto(), DType.BF16, 1, 128);
        Tensor idx = Tensor.allocate(Arena.ofAuto(), DType.I64, 1, 1);
        return DispatchPlan.builder(x).topk(idx, null, 1);
    }

    private static void require(CallTimeouts given, Duration start, Duration other) {
        assertThat(given.start()).isEqualTo(start);
        assertThat(given.startNanos()).isEqualTo(start.toNanos());
        assertThat(given.nanos()).isEqualTo(other.toNanos());
    }

    @Test
    void aPlanSaysWhatItSaysAndItsBufferTheRest() {
        CallTimeouts both = new CallTimeouts(SECOND, MINUTE);
        CallTimeouts one = new CallTimeouts(SECOND, null);
        require(both.of(plan().build()), MINUTE, SECOND);
        require(both.of(plan().timeout(HOUR).build()), MINUTE, HOUR);
        require(both.of(plan().startTimeout(HOUR).build()), HOUR, SECOND);
        require(one.of(plan().build()), SECOND, SECOND);
        require(one.of(plan().timeout(HOUR).build()), HOUR, HOUR);
        require(one.of(plan().startTimeout(HOUR).build()), HOUR, SECOND);
        require(one.of(plan().timeout(MINUTE).startTimeout(HOUR).build()), HOUR, MINUTE);
    }

    @Test
    void noTimeIsRefused() {
        assertThatThrownBy(() -> plan().startTimeout(Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("startTimeout=PT0S must be positive and at most");
    }
}
