package io.deepep.cuda.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PciAddressTest {
    @ParameterizedTest
    @CsvSource({
        "0000:1b:00.0, 0000:1b:00.0",
        "0000:1B:00.0, 0000:1b:00.0", // CUDA
        "00000000:1B:00.0, 0000:1b:00.0", // NVML
        "10000:01:1f.7, 10000:01:1f.7", // a domain that a volume management device makes
        "FFFFFFFF:FF:1F.7, ffffffff:ff:1f.7"
    })
    void everyWritingIsRead(String text, String written) {
        assertThat(PciAddress.parse(text)).hasToString(written);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "1b:00.0",
                "0000:1b:00",
                "0000:1b:20.0",
                "0000:1b:00.8",
                "gpu0",
                "0000-1b:00.0"
            })
    void othersAreRefused(String text) {
        assertThatThrownBy(() -> PciAddress.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("\"" + text + "\" is not a PCI address such as 0000:1b:00.0");
    }

    @Test
    void orderIsThatOfUnsignedNumbers() {
        List<PciAddress> ascending =
                Stream.of(
                                "0000:02:00.0",
                                "0000:0a:00.0",
                                "0000:0a:00.1",
                                "0000:0a:01.0",
                                "0001:00:00.0",
                                "10000:00:00.0",
                                "ffffffff:00:00.0")
                        .map(PciAddress::parse)
                        .toList();
        assertThat(ascending.reversed().stream().sorted().toList()).isEqualTo(ascending);
    }
}
