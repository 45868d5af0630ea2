package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;

/** What a command printed, and how it ended. */
public record Outcome(int exitCode, String out, String err) {
    public List<String> outLines() {
        return out.lines().toList();
    }

    public List<String> errLines() {
        return err.lines().toList();
    }

    /** It was refused in one line in which all of {@code parts} are. */
    public void requireRefused(String... parts) {
        assertThat(errLines()).singleElement().asString().startsWith("deepep: ").contains(parts);
        assertThat(exitCode).isEqualTo(2);
    }

    /** It was refused in this line, and printed nothing else. */
    public void requireComplaint(String line) {
        assertThat(this).isEqualTo(new Outcome(2, "", line + System.lineSeparator()));
    }

    /** Nothing went wrong. */
    public Outcome requirePassed() {
        assertThat(err).isEmpty();
        assertThat(exitCode).as(out).isZero();
        return this;
    }
}
