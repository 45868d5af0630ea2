package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.InProcessGroup;
import io.deepep.LowLatencyLimits;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Groups that are too large are refused before a driver is needed or anything is allocated. */
class GroupSizeTest {
    @Test
    void allRanksRefuseTooManyByName() throws Exception {
        GroupLimits limits = GroupLimits.lowLatency(Device.Kind.CUDA);
        int numRanks = limits.maxRanks() + 1;
        LowLatencyLimits shape = new LowLatencyLimits(1, 128, 1, numRanks);
        requireRefused(limits, new EpTopology(0, numRanks, 1), buffer -> buffer.lowLatency(shape));
    }

    private static void requireRefused(
            GroupLimits limits, EpTopology topology, Consumer<Buffer.Builder> options)
            throws Exception {
        String why = limits.refusal(topology).orElseThrow();
        try (InProcessGroup group = InProcessGroup.of(topology.numRanks())) {
            group.run(
                    communicator -> {
                        Buffer.Builder builder =
                                Buffer.builder(communicator)
                                        .device(Device.cuda(0))
                                        .ranksPerNode(topology.numNvlRanks());
                        options.accept(builder);
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessage(why);
                    });
        }
    }
}
