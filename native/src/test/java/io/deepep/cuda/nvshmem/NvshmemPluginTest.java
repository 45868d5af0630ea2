package io.deepep.cuda.nvshmem;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whether a plugin is loaded, as a process's mappings tell. */
class NvshmemPluginTest {
    @TempDir Path folder;

    /** Names of other files may be in any encoding. */
    @Test
    void isLoadedBesideAFileWhoseNameIsNotUtf8() throws IOException {
        Path file = Files.createFile(folder.resolve("nvshmem_transport_ibrc.so.3"));
        NvshmemPlugin plugin = new NvshmemPlugin(file, "");
        Path mappings = folder.resolve("maps");
        String other = "7f00-7f10 r-xp 00000000 00:21 7 /home/jörg/libother.so\n";
        Files.writeString(mappings, other, ISO_8859_1);
        assertThat(plugin.isLoaded(mappings)).isFalse();
        String own = "7f20-7f30 r-xp 00000000 00:21 8 " + file.toRealPath() + "\n";
        Files.writeString(mappings, other + own, ISO_8859_1);
        assertThat(plugin.isLoaded(mappings)).isTrue();
        assertThat(plugin.isLoaded(folder.resolve("hidden"))).isTrue();
    }
}
