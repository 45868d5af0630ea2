package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

final class ProgressTest {
    private static final String ERASED = "\r\u001b[2K";

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private Progress progress(boolean terminal) {
        return Progress.of(
                new Console(new PrintWriter(out), new PrintWriter(err), terminal), "cases", 2);
    }

    /** The terminal is where results go: standard error may be a file. */
    @Test
    void aTerminalShowsOneLineThatIsGoneAtTheEnd() {
        try (Progress progress = progress(true)) {
            progress.at("first");
            progress.step();
            progress.at("second");
            progress.step();
        }
        assertThat(out.toString().split(ERASED.replace("[", "\\["), -1))
                .satisfiesExactly(
                        before -> assertThat(before).isEmpty(),
                        line -> assertThat(line).contains("cases 0/2\u001b"),
                        line -> assertThat(line).contains("cases 0/2: first\u001b"),
                        line -> assertThat(line).matches(".*cases 1/2, \\d+:\\d\\d left: second.*"),
                        after -> assertThat(after).isEmpty());
        assertThat(err.toString()).isEmpty();
    }

    @Test
    void nobodyWatchesAFile() {
        try (Progress progress = progress(false)) {
            progress.at("first");
            progress.clear();
            progress.step();
        }
        assertThat(out.toString() + err).isEmpty();
    }
}
