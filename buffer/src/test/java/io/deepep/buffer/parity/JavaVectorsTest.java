package io.deepep.buffer.parity;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.buffer.HostTestBackend;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The vectors that the host backend writes for pytest are the committed ones, byte for byte. {@code
 * -Ddeepep.writeVectors=true} writes them again.
 */
@Tag("checkout")
class JavaVectorsTest {
    private static final String WRITER = "java";
    private static final String INDEX = "index.txt";
    private static final Path GOLDEN = Path.of("..", "python-parity", "golden", WRITER);

    @Test
    void committedVectorsAreWhatTheHostBackendWrites() throws Exception {
        Map<String, byte[]> files = new TreeMap<>();
        for (Map.Entry<String, ParityCase> entry : JavaVectors.cases().entrySet()) {
            ParityCase parity = entry.getValue();
            CaseRunner runner = new CaseRunner(new HostTestBackend(), parity);
            files.put(entry.getKey() + ".safetensors", parity.toFile(runner.run()).toBytes());
        }
        if (Boolean.getBoolean("deepep.writeVectors")) {
            Files.createDirectories(GOLDEN);
            for (Map.Entry<String, byte[]> file : files.entrySet()) {
                Files.write(GOLDEN.resolve(file.getKey()), file.getValue());
            }
            Files.writeString(GOLDEN.resolve(INDEX), String.join("\n", files.keySet()) + "\n");
            return;
        }
        assertThat(VectorFiles.golden(WRITER)).containsExactlyElementsOf(files.keySet());
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
            assertThat(VectorFiles.bytes(WRITER + "/" + file.getKey()))
                    .as(file.getKey() + ": write it again with -Ddeepep.writeVectors=true")
                    .isEqualTo(file.getValue());
        }
    }
}
