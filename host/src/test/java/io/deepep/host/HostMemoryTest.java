package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.spi.posix.NativeAccess;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HostMemoryTest {
    /** Fields of statm. */
    private static final int MAPPED = 0;

    private static final int RESIDENT = 1;

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 127, 128, 129, 4096, (1 << 20) + 3})
    void isZeroedBoundedAndOnALine(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < 4; i++) {
                MemorySegment memory = HostMemory.allocate(arena, bytes);
                assertThat(memory.byteSize()).isEqualTo(Math.max(bytes, 1));
                assertThat(memory.address() % 128).isZero();
                assertThat(
                                memory.mismatch(
                                        MemorySegment.ofArray(new byte[(int) memory.byteSize()])))
                        .isEqualTo(-1);
                memory.fill((byte) -1);
            }
        }
    }

    @Test
    void accessAfterTheArenaHasClosedIsRefused() {
        MemorySegment memory;
        try (Arena arena = Arena.ofShared()) {
            memory = HostMemory.allocate(arena, 64);
        }
        assertThatThrownBy(() -> memory.get(ValueLayout.JAVA_BYTE, 0))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void largeMemoryCostsOnlyWhatIsTouched() throws IOException {
        long size = 2L << 30;
        long resident = pages(RESIDENT);
        long mapped = pages(MAPPED);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = HostMemory.allocate(arena, size);
            memory.set(ValueLayout.JAVA_LONG, size - 8, 42);
            assertThat(memory.get(ValueLayout.JAVA_LONG, size - 8)).isEqualTo(42);
            assertThat(memory.get(ValueLayout.JAVA_LONG, size / 2)).isZero();
            // A page is 4 KiB or more; half of the memory leaves room for what the JVM itself does
            // meanwhile.
            assertThat(pages(RESIDENT) - resident).isLessThan(size / 2 / 4096);
        }
        assertThat(pages(MAPPED) - mapped).as("given back").isLessThan(size / 2 / 4096);
    }

    private static long pages(int field) throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ", -1)[field]);
    }

    @ParameterizedTest
    @ValueSource(longs = {1L << 62, Long.MAX_VALUE})
    void impossibleSizesAreOutOfMemory(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            assertThatThrownBy(() -> HostMemory.allocate(arena, bytes))
                    .isInstanceOf(OutOfMemoryError.class)
                    .hasMessageContaining("cannot allocate " + bytes);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, Long.MIN_VALUE})
    void negativeSizesAreRefused(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            assertThatThrownBy(() -> HostMemory.allocate(arena, bytes))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("bytes=" + bytes);
        }
    }

    /** Allocates 2 MiB. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            HostMemory.allocate(Arena.ofAuto(), 2 << 20).fill((byte) 1);
        }
    }

    @Test
    void javasLimitCountsOnlyWithoutNativeAccess() throws IOException, InterruptedException {
        List<String> options = new ArrayList<>(Programs.SHORT_LIVED);
        options.add("-XX:MaxDirectMemorySize=1m");
        ProcessBuilder program = Programs.java(Program.class, options);
        Programs.run(program).requireSuccess();
        program.command().remove(NativeAccess.OPTION);
        assertThat(Programs.run(program).output())
                .contains("Cannot reserve", "start Java with --enable-native-access=ALL-UNNAMED");
    }
}
