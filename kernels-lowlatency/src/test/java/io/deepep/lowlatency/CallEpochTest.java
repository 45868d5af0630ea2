package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.Word;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The numbers by which flags tell calls apart. */
class CallEpochTest {
    @Test
    void epochsBeginAgain() {
        assertThat(CallEpoch.of(1)).isEqualTo(Word.FIRST_EPOCH);
        assertThat(CallEpoch.of(CallEpoch.PERIOD)).isEqualTo(-1);
        assertThat(CallEpoch.of(CallEpoch.PERIOD + 1)).isEqualTo(Word.FIRST_EPOCH);
        assertThat(Word.call(CallEpoch.of(7))).isEqualTo(7);
        assertThat(Word.call(0)).isZero();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 7, CallEpoch.PERIOD - 1, CallEpoch.PERIOD, CallEpoch.PERIOD + 1})
    void epochsAreNeverZeroAndAlternate(long call) {
        assertThat(CallEpoch.of(call)).isNotZero();
        assertThat(CallEpoch.parity(call + 1)).isNotEqualTo(CallEpoch.parity(call));
        assertThat(CallEpoch.beforeLast(CallEpoch.of(call + 2))).isEqualTo(CallEpoch.of(call));
        assertThat(CallEpoch.hasReached(CallEpoch.of(call), CallEpoch.of(call))).isTrue();
        assertThat(CallEpoch.hasReached(CallEpoch.of(call + 1), CallEpoch.of(call))).isTrue();
        assertThat(CallEpoch.hasReached(CallEpoch.of(call), CallEpoch.of(call + 1))).isFalse();
    }

    /** Before the first calls nobody has stored anything, and all slots are free. */
    @Test
    void slotsAreFreeAtFirst() {
        for (long call = 1; call <= 2; call++) {
            int needed = CallEpoch.beforeLast(CallEpoch.of(call));
            assertThat(CallEpoch.hasReached(0, needed)).isTrue();
        }
    }
}
