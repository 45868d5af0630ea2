package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OutputFileTest {
    private static final Path FULL = Path.of("/dev/full");
    private static final int NUM_RANKS = 4;
    private static final int LOOKS = 1000;

    @TempDir private Path folder;

    @Test
    void lookingLeavesNoTrace() throws IOException {
        Path there = Files.writeString(folder.resolve("there"), "kept");
        Path dangling = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("target"));
        OutputFile.require("--json", folder.resolve("new"));
        OutputFile.require("--json", there);
        OutputFile.require("--json", dangling);
        OutputFile.require("--json", null);
        assertThat(there).hasContent("kept");
        try (var files = Files.list(folder)) {
            assertThat(files).containsExactlyInAnyOrder(there, dangling);
        }
    }

    /** Ranks that are processes of one job all look. */
    @Test
    void manyMayLookAtOnce() throws Exception {
        Path file = folder.resolve("new");
        Callable<Void> look =
                () -> {
                    for (int i = 0; i < LOOKS; i++) {
                        OutputFile.require("--json", file);
                    }
                    return null;
                };
        try (ExecutorService ranks = Executors.newFixedThreadPool(NUM_RANKS)) {
            for (Future<Void> rank : ranks.invokeAll(Collections.nCopies(NUM_RANKS, look))) {
                rank.get();
            }
        }
        assertThat(file).doesNotExist();
    }

    @Test
    void whatCannotBeWrittenIsFoundBeforeTheWork() {
        assertThatThrownBy(() -> OutputFile.require("--json", Path.of("/proc/none")))
                .isInstanceOf(UsageException.class)
                .hasMessage("--json: cannot write /proc/none: NoSuchFileException");
        Path tooLong = folder.resolve("x".repeat(300));
        assertThatThrownBy(() -> OutputFile.require("--json", tooLong))
                .hasMessage("--json: cannot write " + tooLong + ": File name too long");
    }

    @Test
    void aFullDeviceIsFoundBeforeTheWork() {
        assumeTrue(Files.exists(FULL), "there is no /dev/full");
        assertThatThrownBy(() -> OutputFile.require("--json", FULL))
                .isInstanceOf(UsageException.class)
                .hasMessage("--json: cannot write /dev/full: No space left on device");
        OutputFile.require("--json", Path.of("/dev/null"));
    }

    @Test
    void aLinkThatLeadsNowhereIsFoundBeforeTheWork() throws IOException {
        Path absent = folder.resolve("absent");
        Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("absent/file"));
        assertThatThrownBy(() -> OutputFile.require("--json", link))
                .isInstanceOf(UsageException.class)
                .hasMessage("--json=" + absent.resolve("file") + ": there is no folder " + absent);
    }

    @Test
    void aFailureLeavesNoFile() throws IOException {
        assumeTrue(Files.exists(FULL), "there is no /dev/full");
        assertThatThrownBy(() -> OutputFile.write("--json", FULL, "1"))
                .isInstanceOf(UsageException.class)
                .hasMessage("--json: cannot write /dev/full: No space left on device");
        Path new0 = folder.resolve("0");
        OutputFile.write("--json", new0, "123");
        assertThat(new0).hasSize(3);
        OutputFile.discard(new0);
        assertThat(new0).doesNotExist();
        OutputFile.discard(new0);
    }
}
