package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Network;
import io.deepep.bench.CommandLines;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.Mode;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of trials, told by ranks that only play their parts. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ScriptedRanksTest {
    private static final int NUM_RANKS = 2;

    /** Dies as the victim of a kill, and gets a wrong result where its code throws. */
    private static final String SCRIPT =
            """
            echo ready
            while read -r order; do
                kind=PASSED
                case $order in
                    *'"victim":-1,'*) ;;
                    *'"action":"KILL"'*'"rank":1,'*) exit 1 ;;
                    *'"action":"THROW"'*'"rank":0,'*) kind=WRONG ;;
                esac
                usage='{"descriptors":1,"threads":1,"mappings":0,"deviceBytes":0}'
                echo "outcome {\\"usage\\":$usage,\\"outcomes\\":[{\\"kind\\":\\"$kind\\",\\"peer\\":-1,\\"text\\":\\"\\"}]}"
            done
            """;

    /** Gets an error in runs of both ranks. */
    private static final String FAILING =
            SCRIPT.replace("case $order in", "case $order in *'\"size\":2,'*) kind=FAILED ;;");

    private static Chaos chaos(int mostStarts) {
        return chaos(mostStarts, SCRIPT);
    }

    private static Chaos chaos(int mostStarts, String script) {
        AtomicInteger started = new AtomicInteger();
        RankRun run =
                new RankRun(Placement.host(""), NUM_RANKS, Network.auto(), Duration.ofSeconds(10));
        return new Chaos(
                CommandLines.silent(),
                Return.GROUP,
                place -> "--from " + place,
                model ->
                        new World(
                                model,
                                run,
                                NUM_RANKS,
                                seat ->
                                        ChaosProcess.start(
                                                started.incrementAndGet() > mostStarts
                                                        ? List.of("false")
                                                        : List.of("/bin/sh", "-c", script),
                                                seat)));
    }

    private static Trial trial(Action action) {
        return new Trial(9, Mode.NORMAL, RankKind.PROCESSES, action, Moment.DISPATCH, 1, 0, 0);
    }

    @Test
    void aBreachIsToldWithThePlaceOfItsTrial() {
        Chaos chaos = chaos(NUM_RANKS);
        chaos.run(List.of(trial(Action.SLOW), trial(Action.THROW)), Duration.ofMinutes(1), 1);
        ChaosReport report = chaos.report();
        assertThat(report.made()).isEqualTo(2);
        assertThat(report.breaches())
                .singleElement()
                .asString()
                .startsWith("normal processes throw dispatch Trial[seed=9, ")
                .endsWith(": rank 0 wrong; again: --from 1");
        assertThat(report.failure()).isNull();
        assertThat(report.isGood()).isFalse();
    }

    @Test
    void whatWasMadeIsToldWhereNoProcessComesInThePlaceOfADeadOne() {
        Chaos chaos = chaos(NUM_RANKS);
        chaos.run(
                List.of(trial(Action.SLOW), trial(Action.KILL), trial(Action.SLOW)),
                Duration.ofMinutes(1),
                1);
        ChaosReport report = chaos.report();
        assertThat(report.failure()).startsWith("chaos: a rank's process does not start: ");
        assertThat(report.isGood()).isFalse();
        assertThat(report.breaches()).isEmpty();
        assertThat(report.made()).isEqualTo(1);
        assertThat(report.inOrder()).isEqualTo(1);
        assertThat(report.tallies()).singleElement().matches(slow -> slow.tried == 1);
    }

    @Test
    void aNewProcessTakesThePlaceOfADeadOne() {
        Chaos chaos = chaos(NUM_RANKS + 1);
        chaos.run(List.of(trial(Action.KILL)), Duration.ofMinutes(1), 1);
        assertThat(chaos.report().isGood()).isTrue();
        assertThat(chaos.report().tallies()).singleElement().matches(kill -> kill.replaced == 1);
    }

    @Test
    void noTrialIsMadeWhereUndisturbedRanksFail() {
        Chaos chaos = chaos(NUM_RANKS, FAILING);
        assertThatThrownBy(() -> chaos.run(List.of(trial(Action.SLOW)), Duration.ofMinutes(1), 1))
                .isInstanceOf(UsageException.class)
                .hasMessage(
                        "chaos: before the first trial, in normal mode, rank 0 of the processes failed");
        assertThat(chaos.report().made()).isZero();
    }

    @Test
    void withoutAnyTrialThereIsNothingToTell() {
        Chaos chaos = chaos(1);
        assertThatThrownBy(() -> chaos.run(List.of(trial(Action.SLOW)), Duration.ofMinutes(1), 1))
                .isInstanceOf(UsageException.class)
                .hasMessageStartingWith("chaos: a rank's process does not start: ");
    }
}
