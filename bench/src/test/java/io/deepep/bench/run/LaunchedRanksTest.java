package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.InProcessGroup;
import io.deepep.testkit.oracle.OracleMismatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What processes agree on after each round; here they are threads. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LaunchedRanksTest {
    private static final int NUM_RANKS = 3;

    private interface Body {
        void run(int rank, LaunchedRanks ranks);
    }

    private static void onEach(Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        try (LaunchedRanks ranks = new LaunchedRanks(communicator)) {
                            body.run(communicator.rank(), ranks);
                        }
                    });
        }
    }

    private static RankFailure wrong(int rank) {
        return new RankFailure(rank, new OracleMismatch("row 3 of rank " + rank));
    }

    private static RankFailure broken(int rank) {
        return new RankFailure(rank, new IllegalStateException("rank " + rank + " fell over"));
    }

    @Test
    void theSlowestOfAllIsTheTimeOfARound() throws InterruptedException {
        onEach(
                (rank, ranks) -> {
                    assertThat(ranks.numRanks()).isEqualTo(NUM_RANKS);
                    assertThat(ranks.localRanks()).containsExactly(rank);
                    assertThat(ranks.meet(100L + rank, null)).isEqualTo(102);
                });
    }

    @Test
    void ranksOfOtherProcessesHaveAPlaceButNoAnswer() throws InterruptedException {
        onEach(
                (rank, ranks) -> {
                    Integer[] answers = new Integer[NUM_RANKS];
                    answers[rank] = 10 * rank;
                    try (RankTeam team = RankTeam.start(ranks)) {
                        assertThat(team.ask(each -> 10 * each)).containsExactly(answers);
                        assertThat(team.size()).isEqualTo(NUM_RANKS);
                    }
                });
    }

    @Test
    void aWrongResultOfOneIsAFailureOfAll() throws InterruptedException {
        onEach(
                (rank, ranks) -> {
                    RankFailure failure =
                            catchThrowableOfType(
                                    RankFailure.class,
                                    () -> ranks.meet(1, rank == 1 ? wrong(1) : null));
                    assertThat(failure).hasMessage("rank 1: row 3 of rank 1");
                    assertThat(failure).hasCauseInstanceOf(OracleMismatch.class);
                    assertThat(ranks.meet(1, null)).isEqualTo(1);
                });
    }

    /** All have to start again, or none. */
    @Test
    void theWorstFailureDecides() throws InterruptedException {
        onEach(
                (rank, ranks) ->
                        assertThatThrownBy(() -> ranks.meet(1, rank == 2 ? broken(2) : wrong(rank)))
                                .isInstanceOf(RankFailure.class)
                                .hasMessage("rank 2: rank 2 fell over")
                                .hasCauseInstanceOf(IllegalStateException.class));
    }
}
