package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What {@code --jfr} leaves of a command that does not come to its end. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FlightRecorderOptionTest {
    @TempDir private Path folder;

    /** Where the flight recorder could collect none, it would end the JVM, or throw. */
    @Test
    void aTemporaryFolderThatTakesNoEventsIsRefused() throws Exception {
        Path file = folder.resolve("run.jfr");
        ProcessBuilder builder =
                CommandLines.process("test-intranode --backend host --ranks 2", "--jfr=" + file);
        builder.command().add(1, "-Djava.io.tmpdir=/proc");
        Programs.Ended ended = Programs.run(builder);
        assertThat(ended.output().lines())
                .singleElement()
                .asString()
                .startsWith("deepep: --jfr: cannot write /proc/deepep-")
                .endsWith("choose another folder by DEEPEP_JAVA_OPTS=-Djava.io.tmpdir=FOLDER");
        assertThat(ended.status()).isEqualTo(2);
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void anInterruptedCommandLeavesWhatWasRecorded() throws Exception {
        Path file = folder.resolve("run.jfr");
        Process process =
                CommandLines.process("test-intranode --backend host --ranks 2", "--jfr=" + file)
                        .start();
        try (BufferedReader out = process.inputReader()) {
            long numPassed = out.lines().filter(line -> line.endsWith("PASS")).limit(12).count();
            assertThat(numPassed).as("of many more cases").isEqualTo(12);
            process.destroy(); // as Ctrl-C does
            assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(Files.size(file)).isPositive();
        assertThat(RecordingFile.readAllEvents(file))
                .anyMatch(event -> event.getEventType().getName().equals("io.deepep.Operation"));
    }
}
