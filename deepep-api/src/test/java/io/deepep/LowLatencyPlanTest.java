package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LowLatencyPlanTest {
    @ParameterizedTest
    @CsvSource({
        // selections, share, by default
        "0, 132, 64",
        "8, 132, 64",
        "64, 132, 64",
        "65, 132, 65",
        "131, 132, 131",
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
