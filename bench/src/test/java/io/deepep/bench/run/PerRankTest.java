package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PerRankTest {
    private final Queue<String> closed = new ConcurrentLinkedQueue<>();

    /** Tells, when it is closed, whose it was and where that was done. */
    private record Opened(int rank, Queue<String> closed) implements AutoCloseable {
        @Override
        public void close() {
            closed.add(rank + " on " + Thread.currentThread().getName());
        }
    }

    @Test
    void eachIsClosedOnceOnItsRanksThread() {
        try (RankTeam team = RankTeam.start(3)) {
            PerRank<Opened> all = PerRank.open(team, rank -> new Opened(rank, closed));
            assertThat(all.get(2).rank()).isEqualTo(2);
            all.close();
            all.close();
        }
        assertThat(closed)
                .containsExactlyInAnyOrder(
                        "0 on deepep-rank-0", "1 on deepep-rank-1", "2 on deepep-rank-2");
    }

    @Test
    void whatWasOpenedIsClosedWhereOneRankFails() {
        try (RankTeam team = RankTeam.start(3)) {
            assertThatThrownBy(() -> PerRank.open(team, this::failing))
                    .isInstanceOf(RankFailure.class)
                    .hasMessage("rank 1: no");
        }
        assertThat(closed).containsExactlyInAnyOrder("0 on deepep-rank-0", "2 on deepep-rank-2");
    }

    private Opened failing(int rank) {
        if (rank == 1) {
            throw new IllegalStateException("no");
        }
        return new Opened(rank, closed);
    }
}
