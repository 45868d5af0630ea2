package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How the blocks of a combine across nodes are divided. */
class CombineRolesTest {
    @ParameterizedTest
    @CsvSource({
        "2, 2, 24, 16",
        "2, 2, 16, 10",
        "2, 2, 8, 5",
        "2, 2, 2, 1",
        "2, 1, 24, 16",
        "2, 4, 20, 10",
        "4, 2, 24, 12",
        "4, 8, 14, 7"
    })
    void homeBlocksFollowFromWhatTheyLoad(int nodes, int perNode, int numSms, int home) {
        CombineRoles roles = roles(nodes, perNode, numSms);
        assertThat(roles).isEqualTo(new CombineRoles(home, numSms - home));
    }

    @Test
    void tokensOfAChannelShareTheirBlocks() {
        for (int nodes = 2; nodes <= 33; nodes++) {
            for (int numSms = 2; numSms <= 256; numSms += 2) {
                CombineRoles roles = roles(nodes, 8, numSms);
                int channels = roles.numChannels();
                assertThat(channels % roles.numHomeBlocks()).isZero();
                assertThat(channels % roles.numSummingBlocks()).isZero();
                assertThat(channels).isLessThanOrEqualTo(numSms / 2 * RingShape.MOST_COMBINE_RINGS);
            }
        }
    }

    private static CombineRoles roles(int nodes, int perNode, int numSms) {
        return CombineRoles.of(numSms, new EpTopology(0, nodes * perNode, perNode));
    }
}
