package io.deepep.normal;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.EpTopology;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How the blocks of a combine across nodes are divided. */
class CombineRolesTest {
    @ParameterizedTest
    @CsvSource({
        "BF16, 2, 2, 24, 16",
        "BF16, 2, 2, 20, 12",
        "BF16, 2, 2, 16, 8",
        "BF16, 2, 2, 8, 4",
        "BF16, 2, 2, 2, 1",
        "BF16, 2, 1, 24, 16",
        "BF16, 2, 4, 20, 12",
        "BF16, 4, 2, 24, 12",
        "BF16, 4, 8, 14, 7",
        "FP8_E4M3, 2, 2, 24, 12",
        "FP8_E4M3, 2, 2, 16, 8"
    })
    void homeBlocksFollowFromTheWork(DType rowType, int nodes, int perNode, int numSms, int home) {
        CombineRoles roles = roles(rowType, nodes, perNode, numSms);
        assertThat(roles).isEqualTo(new CombineRoles(home, numSms - home));
    }

    @Test
    void tokensOfAChannelShareTheirBlocks() {
        for (int nodes = 2; nodes <= 33; nodes++) {
            for (int numSms = 2; numSms <= 256; numSms += 2) {
                CombineRoles roles = roles(DType.BF16, nodes, 8, numSms);
                int channels = roles.numChannels();
                assertThat(channels % roles.numHomeBlocks()).isZero();
                assertThat(channels % roles.numSummingBlocks()).isZero();
                assertThat(roles.channelsPerSummingBlock() * roles.numSummingBlocks())
                        .isEqualTo(channels);
                assertThat(roles.mostChannels())
                        .isEqualTo(
                                Math.max(
                                        channels / roles.numHomeBlocks(),
                                        channels / roles.numSummingBlocks()));
                assertThat(channels).isLessThanOrEqualTo(numSms / 2 * RingShape.MOST_COMBINE_RINGS);
            }
        }
    }

    private static CombineRoles roles(DType rowType, int nodes, int perNode, int numSms) {
        return CombineRoles.of(numSms, new EpTopology(0, nodes * perNode, perNode), rowType);
    }
}
