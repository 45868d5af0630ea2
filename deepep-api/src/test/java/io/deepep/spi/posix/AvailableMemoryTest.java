package io.deepep.spi.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AvailableMemoryTest {
    private static final long MACHINE = 1000 * 1024;

    @TempDir private Path root;

    @BeforeEach
    void machine() throws IOException {
        write("proc/meminfo", "MemTotal:  2000 kB\nMemFree:  10 kB\nMemAvailable:  1000 kB\n");
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }

    private long read() {
        return new AvailableMemory(root.resolve("proc"), root.resolve("cgroup")).read();
    }

    @Test
    void withoutGroupsTheMachineCounts() throws IOException {
        assertThat(read()).isEqualTo(MACHINE);
        write("proc/self/cgroup", "0::/\n");
        assertThat(read()).isEqualTo(MACHINE);
    }

    /** Pages of files that nobody uses are given back on demand. */
    @Test
    void aGroupLeavesItsLimitLessWhatItCannotGiveBack() throws IOException {
        write("proc/self/cgroup", "0::/job/rank\n");
        write("cgroup/job/rank/memory.max", "max\n");
        write("cgroup/job/rank/memory.current", "5000\n");
        write("cgroup/job/memory.max", "9000\n");
        write("cgroup/job/memory.current", "8000\n");
        assertThat(read()).isEqualTo(1000);
        write("cgroup/job/memory.stat", "anon 1\ninactive_file 300\nactive_file 7\n");
        assertThat(read()).isEqualTo(1300);
        write("cgroup/job/memory.current", "9900\n");
        assertThat(read()).isZero();
    }

    @Test
    void aGroupOfVersionOneCountsAsWell() throws IOException {
        write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/\n");
        write("cgroup/memory/job/memory.limit_in_bytes", "700\n");
        write("cgroup/memory/job/memory.usage_in_bytes", "200\n");
        write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("cgroup/memory/memory.usage_in_bytes", "600\n");
        assertThat(read()).isEqualTo(500);
    }

    /** A name in another charset; and one that the locale cannot spell, as NUL is in none. */
    @Test
    void ofAGroupWhoseNameCannotBeReadTheRootCounts() throws IOException {
        write("cgroup/memory.max", "900\n");
        write("cgroup/memory.current", "100\n");
        write("proc/self/cgroup", "0::/m\0ller\n");
        assertThat(read()).isEqualTo(800);
        Files.writeString(
                root.resolve("proc/self/cgroup"), "0::/müller\n", StandardCharsets.ISO_8859_1);
        assertThat(read()).isEqualTo(800);
    }

    @Test
    void aMachineThatTellsNothingRefusesNothing() throws IOException {
        Files.delete(root.resolve("proc/meminfo"));
        assertThat(read()).isEqualTo(Long.MAX_VALUE);
    }
}
