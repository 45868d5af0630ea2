package io.deepep.spi.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharedMemoryTest {
    private static final int BYTES = 10_000;
    private static final long PID = ProcessHandle.current().pid();

    @BeforeAll
    static void requireLinux() {
        assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "this system has no /proc");
    }

    private static String name() {
        return "deepep-test-" + UUID.randomUUID();
    }

    @Test
    void bothSeeTheSameMemoryAlsoWhenTheDescriptorsAreClosed() {
        String name = name();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made;
            MemorySegment opened;
            try (SharedMemory memory = SharedMemory.create(name, BYTES)) {
                made = memory.map(0, BYTES, arena);
                try (SharedMemory same = SharedMemory.open(PID, memory.fd(), name, BYTES)) {
                    opened = same.map(4096, BYTES - 4096, arena);
                }
            }
            assertThat(opened.get(ValueLayout.JAVA_BYTE, 7)).isZero();
            made.set(ValueLayout.JAVA_BYTE, 4096 + 7, (byte) 3);
            assertThat(opened.get(ValueLayout.JAVA_BYTE, 7)).isEqualTo((byte) 3);
        }
    }

    /** Pages are there before anybody writes: a write that finds none ends the process. */
    @Test
    void pagesAreTakenWhenItIsMade() throws Exception {
        try (SharedMemory memory = SharedMemory.create(name(), 1 << 20)) {
            Process du =
                    new ProcessBuilder(
                                    "stat", "-L", "-c", "%b", "/proc/" + PID + "/fd/" + memory.fd())
                            .start();
            String blocks =
                    new String(du.getInputStream().readAllBytes(), StandardCharsets.US_ASCII)
                            .trim();
            assertThat(512 * Long.parseLong(blocks)).isGreaterThanOrEqualTo(1 << 20);
        }
    }

    /** As where a container forbids the call; here the name is longer than Linux takes. */
    @Test
    void whoMayNotMakeItIsToldTheCallAndTheCure() {
        assertThatThrownBy(() -> SharedMemory.create("n".repeat(300), BYTES))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageStartingWith("memfd_create failed: ")
                .hasMessageContaining("(errno 22); ")
                .hasMessageContaining("seccomp");
    }

    @Test
    void itsSizeIsFinal() {
        Libc libc = Libc.get();
        try (SharedMemory memory = SharedMemory.create(name(), BYTES)) {
            for (long bytes : new long[] {0, BYTES - 1, BYTES + 1}) {
                assertThatThrownBy(() -> libc.ftruncate(memory.fd(), bytes))
                        .isInstanceOf(Libc.Failure.class)
                        .hasMessageContaining("not permitted");
            }
        }
    }

    @Test
    void moreThanThereIsIsRefusedWithTheNumbers() {
        assertThatThrownBy(() -> SharedMemory.create(name(), 1L << 50).close())
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("" + (1L << 50))
                .hasMessageContaining("available")
                .hasMessageContaining("lower the limits");
    }

    @Test
    void anotherNameIsRefused() {
        try (SharedMemory memory = SharedMemory.create("deepep-of-another-job", BYTES)) {
            requireRefused(memory.fd(), "deepep-of-this-job", BYTES, "not memory of this job");
        }
    }

    @Test
    void anotherSizeIsRefused() {
        String name = name();
        try (SharedMemory memory = SharedMemory.create(name, BYTES)) {
            requireRefused(memory.fd(), name, BYTES + 1, "it has 10000 bytes instead of 10001");
            requireRefused(memory.fd(), name, BYTES - 1, "it has 10000 bytes instead of 9999");
        }
    }

    /** It could be made shorter under whoever maps it, whose next read would end the process. */
    @Test
    void memoryThatCanShrinkIsRefused() {
        Libc libc = Libc.get();
        String name = name();
        int fd = libc.memfdCreate(name, 2);
        libc.ftruncate(fd, BYTES);
        requireRefused(fd, name, BYTES, "it is not sealed (seals 0)");
        libc.fcntl(fd, 1033, 4);
        requireRefused(fd, name, BYTES, "it is not sealed (seals 4)");
        PosixFd.close(fd);
    }

    /** A stranger could name a file of the victim's, by a link or a descriptor. */
    @Test
    void aFileIsRefusedAndStaysAsItWas(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("memfd:deepep (deleted)");
        Files.write(file, new byte[BYTES]);
        int fd = Libc.get().open(file.toString(), 2);
        requireRefused(fd, "deepep", BYTES, "not memory of this job, but " + folder);
        PosixFd.close(fd);
        assertThat(Files.readAllBytes(file)).isEqualTo(new byte[BYTES]);
    }

    @Test
    void whatIsNotThereIsRefused() {
        requireRefused(1 << 20, "deepep", BYTES, "NoSuchFileException");
        assertThatThrownBy(() -> SharedMemory.open(Integer.MAX_VALUE, 3, "deepep", BYTES))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("one PID namespace");
    }

    private static void requireRefused(int fd, String name, long bytes, String mentions) {
        assertThatThrownBy(() -> SharedMemory.open(PID, fd, name, bytes).close())
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(mentions);
    }
}
