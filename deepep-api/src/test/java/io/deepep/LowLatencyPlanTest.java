package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LowLatencyPlanTest {
    @ParameterizedTest
    @CsvSource({
        // selections, share, by default
        "0, 132, 48",
        "32, 132, 48",
        "33, 132, 80",
        "128, 132, 80",
        "129, 132, 129",
        "133, 132, 132",
        "1024, 132, 132",
        "8, 33, 33",
        "1024, 1, 1",
        "9000000000, 148, 148",
    })
    void moreSelectionsTakeMoreMultiprocessors(long selections, int share, int byDefault) {
        assertThat(LowLatencyPlan.defaultNumSms(selections, share)).isEqualTo(byDefault);
    }
}
