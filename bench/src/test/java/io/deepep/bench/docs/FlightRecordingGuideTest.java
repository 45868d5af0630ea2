package io.deepep.bench.docs;

import static io.deepep.bench.docs.Checkout.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Main;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The options with which the guide starts a recording record what it says. */
@Timeout(120)
@Tag("checkout")
class FlightRecordingGuideTest {
    private static final Path GUIDE = ROOT.resolve("docs/guides/observability.md");
    private static final Pattern OPTION =
            Pattern.compile("^java (-XX:StartFlightRecording:\\S+)", Pattern.MULTILINE);

    static List<String> options() throws IOException {
        return OPTION.matcher(Files.readString(GUIDE))
                .results()
                .map(match -> match.group(1))
                .toList();
    }

    @Test
    void theGuideShowsBothWays() throws IOException {
        assertThat(options()).hasSize(2);
    }

    @ParameterizedTest
    @MethodSource("options")
    void allEventsAreRecordedAndNoSecret(String option, @TempDir Path folder) throws Exception {
        Path file = folder.resolve("run.jfr");
        String small =
                "test-intranode --backend host --ranks 2 --num-tokens 4 --hidden 256 --num-experts 8"
                        + " --num-topk 2";
        String recording = option.replace("filename=run.jfr", "filename=" + file);
        ProcessBuilder builder =
                Programs.java(Main.class, List.of(recording), small.split(" "))
                        .directory(ROOT.toFile());
        builder.environment().put("DEEPEP_SECRET", "not for recordings");
        Programs.run(builder).requireSuccess();
        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        Set<String> names =
                events.stream().map(e -> e.getEventType().getName()).collect(Collectors.toSet());
        assertThat(names).contains("io.deepep.Operation", "io.deepep.Peer", "io.deepep.ExpertLoad");
        assertThat(names).doesNotContain("jdk.InitialEnvironmentVariable");
    }
}
