package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The committed header is the one that Java's definition gives. */
class LowLatencyStructsTest {
    @Test
    void headerIsCurrent() throws IOException {
        Path file = Path.of("src/main/cuda/lowlatency_structs.cuh");
        if (Boolean.getBoolean("deepep.writeHeaders")) {
            Files.writeString(file, LowLatencyStructs.HEADER.text());
        }
        assertThat(file)
                .as("write it again with -Ddeepep.writeHeaders=true")
                .hasContent(LowLatencyStructs.HEADER.text());
    }
}
