package io.deepep.bench.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class QuantityTest {
    @ParameterizedTest
    @CsvSource({
        "0, 0 µs",
        "0.9, 0.90 µs",
        "12.34, 12.3 µs",
        "250.688, 251 µs",
        "999.4, 999 µs",
        "999.6, 1.00 ms",
        "18400, 18.4 ms",
        "1234567, 1.23 s",
        "1e10, 10000 s",
    })
    void timesHaveTheUnitThatFits(double micros, String text) {
        assertThat(Quantity.micros(micros)).hasToString(text);
        assertThat(Quantity.micros(micros).value()).isEqualTo(micros);
    }

    @ParameterizedTest
    @CsvSource({"0, 0 B", "7, 7 B", "1000, 1.00 kB", "82785024, 82.8 MB", "330231299463, 330 GB"})
    void bytesToo(long bytes, String text) {
        assertThat(Quantity.bytes(bytes)).hasToString(text);
        assertThat(Quantity.bytesPerSecond((double) bytes)).hasToString(text + "/s");
    }

    @Test
    void whatIsNotKnownIsLeftOut() {
        assertThat(Quantity.micros(Double.NaN)).hasToString("");
        assertThat(Quantity.percent(Double.NaN)).hasToString("");
        assertThat(Quantity.percent(0.936)).hasToString("94 %");
    }
}
