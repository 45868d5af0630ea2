package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.text.Lines;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.planner.Mode;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The tool can say no: each way in which a promise can be broken is one. */
class VerdictTest {
    private static final int VICTIM = 1;
    private static final Outcome BLAMES_VICTIM = blaming(VICTIM);

    private static Outcome blaming(int peer) {
        return Outcome.of(
                new IllegalStateException(
                        new DeepEpTimeoutException(0, peer, "dispatch.header", 1, 0, 5)));
    }

    private static Trial trial(Action action) {
        return new Trial(1, Mode.NORMAL, RankKind.PROCESSES, action, Moment.COMBINE, VICTIM, 0, 0);
    }

    private static List<String> breaches(Action action, Outcome other, Outcome victim) {
        return Verdict.breaches(trial(action), List.of(other, victim, Outcome.PASSED));
    }

    @Test
    void aKilledRankIsNamed() {
        assertThat(breaches(Action.KILL, BLAMES_VICTIM, Outcome.DEAD)).isEmpty();
        assertThat(breaches(Action.KILL, Outcome.PASSED, Outcome.DEAD)).isEmpty();
    }

    @Test
    void aHealthyRankThatIsNamedIsABreach() {
        assertThat(breaches(Action.KILL, blaming(2), Outcome.DEAD))
                .singleElement()
                .asString()
                .startsWith("rank 0 named (");
    }

    @Test
    void wrongResultsHangsAndOtherErrorsAreBreaches() {
        Outcome wrong = Outcome.of(new OracleMismatch("row 3"));
        Outcome failed = Outcome.of(new IllegalStateException("closed"));
        for (Outcome other : List.of(wrong, failed, Outcome.HUNG, Outcome.DEAD)) {
            assertThat(breaches(Action.KILL, other, Outcome.DEAD)).hasSize(1);
        }
        assertThat(breaches(Action.FREEZE, BLAMES_VICTIM, wrong)).hasSize(1);
        assertThat(breaches(Action.THROW, BLAMES_VICTIM, Outcome.DEAD)).hasSize(1);
        assertThat(breaches(Action.THROW, BLAMES_VICTIM, failed)).isEmpty();
    }

    @Test
    void slowIsNotDead() {
        for (Action harmless : List.of(Action.SLOW, Action.PAUSE)) {
            assertThat(breaches(harmless, Outcome.PASSED, Outcome.PASSED)).isEmpty();
            assertThat(breaches(harmless, BLAMES_VICTIM, Outcome.PASSED)).hasSize(1);
            assertThat(breaches(harmless, Outcome.PASSED, blaming(0))).hasSize(1);
        }
    }

    @Test
    void outcomesSurviveTheirWay() {
        for (Outcome outcome :
                List.of(Outcome.PASSED, BLAMES_VICTIM, Outcome.of(new OracleMismatch("a\nb  c")))) {
            assertThat(Lines.read(Lines.write(outcome), Outcome.class)).isEqualTo(outcome);
        }
    }
}
