package io.deepep.cuda.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The committed header is the one that Java's definition gives. */
@Tag("checkout")
class NetworkStructsTest {
    @Test
    void headerIsCurrent() throws IOException {
        Path file = Path.of("src/main/cuda/include/deepep/network_structs.cuh");
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(file, NetworkStructs.HEADER.text());
        }
        assertThat(file)
                .as("write it again with -Ddeepep.writeHeaders=true")
                .hasContent(NetworkStructs.HEADER.text());
    }
}
