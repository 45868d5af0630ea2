package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A flight recording, made as the documentation says, does not hold the secret. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("checkout")
class RecordingTest {
    private static final Path GUIDE = Path.of("../docs/guides/observability.md");
    private static final Pattern OPTION =
            Pattern.compile("-XX:StartFlightRecording:filename=run\\.jfr(\\S+)");
    private static final String SECRET = "4b1d5ecre7-of-this-test";

    @Test
    void theSecretIsNotRecorded(@TempDir Path folder) throws Exception {
        Matcher option = OPTION.matcher(Files.readString(GUIDE));
        assertThat(option.find()).isTrue();
        byte[] recording = record(folder.resolve("run.jfr"), option.group(1));
        String text = new String(recording, StandardCharsets.ISO_8859_1);
        assertThat(text).as("what a recording says in plain").contains("RankProgram");
        assertThat(text).doesNotContain(SECRET);
    }

    private static byte[] record(Path file, String settings) throws Exception {
        Map<String, String> variables = Groups.variables(0, 1, "127.0.0.1", LoopbackPorts.free());
        variables.put("DEEPEP_SECRET", SECRET);
        variables.put("JDK_JAVA_OPTIONS", "-XX:StartFlightRecording:filename=" + file + settings);
        try (RankProcess rank = RankProcess.start(variables, 60_000, 60_000)) {
            String line = rank.hear();
            while (!line.startsWith("joined")) {
                line = rank.hear(); // of the recorder
            }
            rank.leave();
        }
        return Files.readAllBytes(file);
    }
}
