package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import org.junit.jupiter.api.Test;

/** Groups that are too large are refused before a driver is needed or anything is allocated. */
class GroupSizeTest {
    @Test
    void allRanksRefuseTooManyByName() throws Exception {
        GroupLimits limits = GroupLimits.lowLatency(Device.Kind.CUDA);
        int numRanks = limits.maxRanks() + 1;
        String why = limits.refusal(new EpTopology(0, numRanks, 1)).orElseThrow();
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        Buffer.Builder builder =
                                Buffer.builder(communicator)
                                        .device(Device.cuda(0))
                                        .ranksPerNode(1)
                                        .lowLatency(new LowLatencyLimits(1, 128, 1, numRanks));
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessage(why);
                    });
        }
    }
}
