package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What links demand; the management library is played by fake_nvml.c. */
class LinkSpeedTest {
    private static final long GIGA = 1_000_000_000;
    private static final long H200_LINKS = 18 * 26_562_000_000L;
    private static final long H200_CLOCK = 1_980_000_000;

    @Test
    void allActiveLinksCount(@TempDir Path folder) {
        NativeLibrary library =
                NativeLibrary.find(FakeLibraries.compile("fake_nvml", folder).toString())
                        .orElseThrow();
        assertThat(speed(library, 1)).contains(18 * 53_125_000_000L);
        assertThat(speed(library, 2)).contains(16 * 26_562_000_000L);
        assertThat(speed(library, 3)).as("links of a speed that is not told").isEmpty();
        assertThat(speed(library, 5)).as("an unknown GPU").isEmpty();
    }

    private static Optional<Long> speed(NativeLibrary library, int bus) {
        return LinkSpeed.bytesPerSecond(library, PciAddress.parse("0000:0%s:00.0".formatted(bus)));
    }

    @Test
    void libraryWithoutTheFunctionTellsNothing() {
        assertThat(speed(NativeLibrary.find("libm.so.6").orElseThrow(), 1)).isEmpty();
    }

    @Test
    void demandIsThatOfAClockAndNeverLessThanWhatWasMeasured() {
        assertThat(new LinkSpeed(H200_LINKS, H200_CLOCK).demand()).isEqualTo(1);
        assertThat(new LinkSpeed(2 * H200_LINKS, H200_CLOCK).demand()).isEqualTo(2);
        assertThat(new LinkSpeed(H200_LINKS, H200_CLOCK / 2).demand()).isEqualTo(2);
        assertThat(new LinkSpeed(18 * 53_125_000_000L, 1_965_000_000).demand())
                .isCloseTo(2.015, within(0.001));
        assertThat(new LinkSpeed(200 * GIGA, H200_CLOCK).demand()).as("an H800").isEqualTo(1);
    }
}
