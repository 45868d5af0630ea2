package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The management library, played by fake_nvml.c. */
class NvlinkDomainTest {
    private static final String CLUSTER = "ab".repeat(16);

    @TempDir private Path folder;
    private Path library;

    @BeforeEach
    void compile() {
        library = FakeLibraries.compile("fake_nvml", folder);
    }

    private Optional<NvlinkDomain> domain(int bus) {
        return NvlinkDomain.of(
                NativeLibrary.find(library.toString()).orElseThrow(),
                PciAddress.parse("0000:0%s:00.0".formatted(bus)));
    }

    private void set(String name, int value) {
        FakeLibraries.variable(library, name).set(ValueLayout.JAVA_INT, 0, value);
    }

    @Test
    void clusterAndCliqueAreTheDomain() {
        assertThat(domain(1)).contains(new NvlinkDomain(CLUSTER, 1)).isEqualTo(domain(2));
        assertThat(domain(3)).contains(new NvlinkDomain(CLUSTER, 7));
    }

    @Test
    void switchesOfOneHostAreNone() {
        assertThat(domain(4)).isEmpty();
    }

    @Test
    void unknownGpuHasNone() {
        assertThat(domain(5)).isEmpty();
    }

    @Test
    void fabricThatIsNotReadyIsNone() {
        set("fake_fabric_state", 2);
        assertThat(domain(1)).isEmpty();
        set("fake_fabric_state", 3);
        assertThat(domain(1)).isPresent();
        set("fake_fabric_status", 1);
        assertThat(domain(1)).isEmpty();
    }

    @Test
    void libraryWithoutTheFunctionTellsNothing() {
        NativeLibrary other = NativeLibrary.find("libm.so.6").orElseThrow();
        assertThat(NvlinkDomain.of(other, PciAddress.parse("0000:01:00.0"))).isEmpty();
    }
}
