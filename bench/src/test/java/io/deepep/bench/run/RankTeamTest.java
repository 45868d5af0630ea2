package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;

final class RankTeamTest {
    @Test
    void ranksWorkAtTheSameTimeAndAnswerInOrder() {
        CyclicBarrier all = new CyclicBarrier(4);
        try (RankTeam team = RankTeam.start(4)) {
            for (int round = 0; round < 50; round++) {
                List<Integer> answers =
                        team.ask(
                                rank -> {
                                    all.await();
                                    return 10 * rank;
                                });
                assertThat(answers).containsExactly(0, 10, 20, 30);
            }
            assertThat(team.slowestNanos()).isPositive();
        }
    }

    @Test
    void everyRankKeepsItsThread() {
        try (RankTeam team = RankTeam.start(3)) {
            List<Thread> first = team.ask(rank -> Thread.currentThread());
            assertThat(first).doesNotHaveDuplicates();
            assertThat(team.ask(rank -> Thread.currentThread())).isEqualTo(first);
        }
    }

    @Test
    void aFailureIsReportedAfterAllRanksAreDoneAndTheTeamGoesOn() {
        try (RankTeam team = RankTeam.start(3)) {
            assertThatThrownBy(
                            () ->
                                    team.run(
                                            rank -> {
                                                if (rank == 1) {
                                                    throw new IllegalStateException("no luck");
                                                }
                                            }))
                    .isInstanceOf(RankFailure.class)
                    .hasMessage("rank 1: no luck")
                    .hasCauseInstanceOf(IllegalStateException.class);
            assertThat(team.ask(rank -> rank)).containsExactly(0, 1, 2);
        }
    }

    @Test
    void laterFailuresAreKept() {
        try (RankTeam team = RankTeam.start(2)) {
            assertThatThrownBy(
                            () ->
                                    team.run(
                                            rank -> {
                                                throw new AssertionError("rank " + rank);
                                            }))
                    .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
        }
    }
}
