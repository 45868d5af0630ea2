package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

final class ProgressTest {
    private static final String ERASED = "\r\u001b[2K";

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private void work(Console console) {
        try (Progress progress = Progress.of(console, "cases", 2)) {
            progress.at("first");
            console.line("%s is right", 1);
            progress.step();
            progress.at("second");
            console.complain("2 is wrong");
            progress.step();
        }
    }

    /** The terminal is where results go: standard error may be a file. */
    @Test
    void aTerminalShowsALineThatTheNextTakesThePlaceOf() {
        work(new Console(new PrintWriter(out), new PrintWriter(err), true));
        assertThat(out.toString().split(ERASED.replace("[", "\\["), -1))
                .satisfiesExactly(
                        before -> assertThat(before).isEmpty(),
                        line -> assertThat(line).contains("cases 0/2\u001b"),
                        line -> assertThat(line).contains("cases 0/2: first\u001b"),
                        line -> assertThat(line).isEqualToIgnoringNewLines("1 is right"),
                        line -> assertThat(line).matches(".*cases 1/2, \\d+:\\d\\d left: second.*"),
                        complained -> assertThat(complained).isEmpty(),
                        after -> assertThat(after).isEmpty());
        assertThat(err.toString().lines()).containsExactly("deepep: 2 is wrong");
    }

    @Test
    void nobodyWatchesAFile() {
        work(new Console(new PrintWriter(out), new PrintWriter(err), false));
        assertThat(out.toString().lines()).containsExactly("1 is right");
    }
}
