package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.NormalLimits;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.oracle.OracleMismatch;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Test;

final class CaseRunnerTest {
    private record Scripted(String name, RuntimeException failure, AssertionError wrong)
            implements Case {
        @Override
        public long run() {
            if (failure != null) {
                throw failure;
            }
            if (wrong != null) {
                throw wrong;
            }
            return 1_500_000;
        }
    }

    private static Session session() {
        return Session.open(
                Job.onHost(2, 2, 128, 4, 2),
                RankSource.inProcess(2),
                builder -> builder.normal(NormalLimits.of(2, 128, 2, 4)));
    }

    @Test
    void countsAndGoesOnAfterFailures() {
        StringWriter out = new StringWriter();
        Console console =
                new Console(new PrintWriter(out), new PrintWriter(new StringWriter()), false);
        try (Session session = session()) {
            Object buffer = session.buffer(0);
            List<Scripted> cases =
                    List.of(
                            new Scripted("good", null, null),
                            new Scripted(
                                    "wrong", null, new OracleMismatch("row 3: expected 1, saw 2")),
                            new Scripted("good too", null, null));
            assertThat(CaseRunner.verify(console, session, cases, Assertions::fail)).isFalse();
            assertThat(session.buffer(0))
                    .as("a wrong result leaves the buffers as they are")
                    .isSameAs(buffer);
            cases = List.of(new Scripted("broken", new IllegalStateException("gone"), null));
            assertThat(CaseRunner.verify(console, session, cases, Assertions::fail)).isFalse();
            assertThat(session.buffer(0)).as("buffers after a failure").isNotSameAs(buffer);
            cases = List.of(new Scripted("good", null, null));
            assertThat(CaseRunner.verify(console, session, cases, () -> out.write("measured\n")))
                    .isTrue();
        }
        assertThat(out.toString().lines())
                .contains(
                        "good           1.50 ms  PASS",
                        "    row 3: expected 1, saw 2",
                        "    gone",
                        "2 passed, 1 failed",
                        "0 passed, 1 failed",
                        "measured",
                        "1 passed, 0 failed")
                .anyMatch(line -> line.startsWith("wrong") && line.endsWith("FAIL"));
    }

    /** Each of those behind it would wait for the rank until the time-out. */
    @Test
    void whatTheMachineLacksEndsTheRun() {
        StringWriter out = new StringWriter();
        Console console = new Console(new PrintWriter(out), new PrintWriter(out), false);
        List<Throwable> lacks =
                List.of(
                        new OutOfMemoryError("unable to create native thread"),
                        new DeepEpUnavailableException("cuda:0 is full", "free memory"));
        try (Session session = session()) {
            for (Throwable lack : lacks) {
                RankFailure failure = new RankFailure(1, lack);
                List<Scripted> cases =
                        List.of(
                                new Scripted("first", failure, null),
                                new Scripted("second", null, null));
                assertThatThrownBy(
                                () -> CaseRunner.verify(console, session, cases, Assertions::fail))
                        .isSameAs(failure);
            }
        }
        assertThat(out.toString()).doesNotContain("second");
    }
}
