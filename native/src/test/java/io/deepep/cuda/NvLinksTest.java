package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.driver.FakeLibraries;
import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.cuda.topology.PciAddress;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The management library, played by fake_nvml.c. */
class NvLinksTest {
    @TempDir private static Path folder;
    private static Path compiled;
    private static int numCopies;
    private Path library;

    @BeforeAll
    static void compile() {
        compiled = FakeLibraries.compile("fake_nvml", folder);
    }

    @BeforeEach
    void copy() {
        library = FakeLibraries.copy(compiled, folder.resolve("nvml" + numCopies++ + ".so"));
    }

    private NativeLibrary load() {
        return NativeLibrary.find(library.toString()).orElseThrow();
    }

    private MemorySegment variable(String name) {
        return FakeLibraries.variable(library, name);
    }

    private static List<PciAddress> gpus(Integer... buses) {
        return Stream.of(buses)
                .map(bus -> PciAddress.parse(String.format("0000:%02x:00.0", bus)))
                .toList();
    }

    private List<List<Integer>> numLinks(Integer... buses) {
        return NvLinks.between(load(), gpus(buses)).orElseThrow();
    }

    @Test
    void linksAreCountedDirectlyAndThroughSwitches() {
        assertThat(numLinks(1, 2, 3, 4))
                .containsExactly(
                        List.of(0, 16, 0, 0),
                        List.of(16, 0, 0, 0),
                        List.of(0, 0, 0, 4),
                        List.of(0, 0, 4, 0));
        assertThat(variable("fake_open").get(JAVA_INT, 0)).as("open and shut").isZero();
    }

    @Test
    void orderIsThatOfTheQuestion() {
        assertThat(numLinks(4, 1, 3))
                .containsExactly(List.of(0, 0, 4), List.of(0, 0, 0), List.of(4, 0, 0));
    }

    @Test
    void gpuThatIsNotKnownHasNoLinks() {
        assertThat(numLinks(1, 9, 2))
                .containsExactly(List.of(0, 0, 16), List.of(0, 0, 0), List.of(16, 0, 0));
    }

    @Test
    void libraryThatDoesNotStartTellsNothing() {
        variable("fake_init_status").set(JAVA_INT, 0, 9);
        assertThat(NvLinks.between(load(), gpus(1, 2))).isEmpty();
    }

    @Test
    void libraryWithoutTheFunctionsTellsNothing() {
        NativeLibrary other = NativeLibrary.find("libm.so.6").orElseThrow();
        assertThat(NvLinks.between(other, gpus(1, 2))).isEmpty();
    }
}
