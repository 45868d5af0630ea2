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

    /** Nothing went wrong. */
    public Outcome requirePassed() {
        assertThat(err).isEmpty();
        assertThat(exitCode).as(out).isZero();
        return this;
    }
}
