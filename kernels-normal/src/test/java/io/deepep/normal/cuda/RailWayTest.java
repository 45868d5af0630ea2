package io.deepep.normal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.cuda.memory.RdmaHeaps;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tables by which ranks reach each other over a network while ranks may be masked. */
class RailWayTest {
    private static final long PEERS = 1000;
    private static final long STAND_INS = 2000;

    /** Of two ranks, each finds the other, in one table, at a place that nobody else has. */
    @ParameterizedTest
    @CsvSource({"2, 1", "2, 2", "3, 2", "2, 8", "4, 3"})
    void everyRankOfOtherNodes(int nodes, int ranksPerNode) {
        int numRanks = nodes * ranksPerNode;
        for (int own = 0; own < numRanks; own++) {
            EpTopology here = new EpTopology(own, numRanks, ranksPerNode);
            List<Integer> standIns = RailWay.standIns(here);
            Set<Integer> places = new HashSet<>();
            for (int other = 0; other < numRanks; other++) {
                boolean near = other / ranksPerNode == own / ranksPerNode;
                boolean onRail = other % ranksPerNode == own % ranksPerNode;
                assertThat(standIns.contains(other)).isEqualTo(!near && !onRail);
                if (near) {
                    continue;
                }
                RailWay way = RailWay.to(other, here, heaps(numRanks));
                assertThat(way.reach()).isEqualTo(onRail ? PEERS : STAND_INS);
                assertThat(places.add(way.place())).as("place of %s", other).isTrue();
                if (!onRail) {
                    EpTopology there = new EpTopology(other, numRanks, ranksPerNode);
                    assertThat(standIns.get(way.place())).isEqualTo(other);
                    assertThat(RailWay.standIns(there).get(RailWay.standInPlace(here, own)))
                            .as("what leads back")
                            .isEqualTo(own);
                }
            }
        }
    }

    private static RdmaHeaps heaps(int numRanks) {
        List<Long> addresses = Collections.nCopies(numRanks, 0L);
        return RdmaHeaps.over(PEERS, OptionalLong.of(STAND_INS), addresses);
    }
}
