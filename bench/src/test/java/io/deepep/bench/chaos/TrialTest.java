package io.deepep.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.text.Lines;
import io.deepep.planner.Mode;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TrialTest {
    private static final int NUM_RANKS = 5;

    private static List<Trial> draw(long seed, int number) {
        return Trial.draw(
                seed,
                number,
                NUM_RANKS,
                List.of(Mode.values()),
                List.of(RankKind.values()),
                List.of(Action.values()));
    }

    @Test
    void everyKindComesOnceInAPass() {
        Set<String> kinds = new HashSet<>();
        List<Trial> trials = draw(1, 1000);
        int pass = 0;
        while (kinds.add(trials.get(pass).kind())) {
            pass++;
        }
        // 6 moments for each action of processes but "slow", which has 5; 5 for each of 3 of
        // threads.
        assertThat(pass).isEqualTo(2 * (6 * 6 + 5 + 3 * 5));
        assertThat(trials.subList(pass, 2 * pass)).map(Trial::kind).hasSameElementsAs(kinds);
    }

    @Test
    void sameSeedSameTrials() {
        assertThat(draw(7, 300)).isEqualTo(draw(7, 300)).isNotEqualTo(draw(8, 300));
        assertThat(draw(7, 300))
                .allMatch(trial -> trial.victim() >= 0 && trial.victim() < NUM_RANKS)
                .allMatch(trial -> trial.round() >= 0 && trial.round() < Trial.ROUNDS);
    }

    @Test
    void someTrialsStarveThePort() {
        assertThat(draw(5, 2000)).anyMatch(Trial::starvesPort).anyMatch(TrialTest::starvesFiles);
    }

    private static boolean starvesFiles(Trial trial) {
        return trial.action() == Action.STARVE && !trial.starvesPort();
    }

    @Test
    void processesGetWhatWasDrawn() {
        for (Trial trial : draw(3, 200)) {
            RankProgram.Order order =
                    new RankProgram.Order(trial, 2, 1, NUM_RANKS, 20_000, 20_001, "secret");
            assertThat(Lines.read(Lines.write(order), RankProgram.Order.class)).isEqualTo(order);
        }
    }
}
