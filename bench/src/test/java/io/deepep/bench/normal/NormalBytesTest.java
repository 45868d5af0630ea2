package io.deepep.bench.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.bench.run.Job;
import io.deepep.testkit.routing.Routing;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class NormalBytesTest {
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void busiestRankCountsWhatCrossesToOthersOneWay(int numRanks) {
        Job job = Job.onHost(numRanks, 7, 256, 12, 2);
        Routing routing = job.routing();
        int[][] rows = new int[numRanks][numRanks];
        for (int src = 0; src < numRanks; src++) {
            for (int token = 0; token < routing.numTokens(src); token++) {
                for (int to = 0; to < numRanks; to++) {
                    rows[src][to] += routing.goesTo(src, token, to) ? 1 : 0;
                }
            }
        }
        int busiest = 0;
        for (int rank = 0; rank < numRanks; rank++) {
            int out = 0;
            int in = 0;
            for (int other = 0; other < numRanks; other++) {
                out += other == rank ? 0 : rows[rank][other];
                in += other == rank ? 0 : rows[other][rank];
            }
            busiest = Math.max(busiest, Math.max(out, in));
        }
        NormalBytes bytes = new NormalBytes(job);
        assertThat(bytes.busiestLinkBytes(DType.BF16)).isEqualTo(512L * busiest);
        // 256 elements and 2 scales fill two lines and a bit of a third.
        assertThat(bytes.busiestLinkBytes(DType.FP8_E4M3)).isEqualTo(384L * busiest);
    }

    @Test
    void aSingleRankCountsItsOwnRows() {
        Job job = Job.onHost(1, 7, 256, 4, 2);
        assertThat(new NormalBytes(job).busiestLinkBytes(DType.BF16)).isEqualTo(7 * 512L);
    }
}
