package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.buffer.memory.IbgdaStart;
import io.deepep.cuda.CudaDriver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What ranks of several processes tell each other until a buffer is open. */
class StartGathersTest {
    /** Places, options, the same host, where memory is shared, offers, all mapped. */
    private static final int GATHERS_ON_HOST = 6;

    /** The lengths of each rank's messages, in order. */
    private static Queue<List<Integer>> lengths(
            int numRanks, int ranksPerNode, IntFunction<Device> device) throws Exception {
        Queue<List<Integer>> all = new ConcurrentLinkedQueue<>();
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    threads -> {
                        List<Integer> lengths = new ArrayList<>();
                        Buffer.Builder builder =
                                Buffer.builder(new ApartRanks(threads, numRanks, lengths))
                                        .device(device.apply(threads.rank()))
                                        .ranksPerNode(ranksPerNode)
                                        .normal(NormalLimits.of(1, 128, 1, numRanks));
                        try (Buffer _ = builder.open()) {
                            threads.barrier(Duration.ofMinutes(1));
                        }
                        all.add(lengths);
                    });
        }
        return all;
    }

    private static void require(Queue<List<Integer>> all, int numRanks, int gathers) {
        assertThat(all)
                .hasSize(numRanks)
                .allSatisfy(
                        lengths -> {
                            assertThat(lengths).hasSize(gathers);
                            assertThat(lengths.stream().mapToInt(length -> length).sum())
                                    .isLessThanOrEqualTo(IbgdaStart.BYTES_OF_BUFFER);
                        });
    }

    /** As many gathers, and messages no longer than that, in groups of any size. */
    @ParameterizedTest
    @ValueSource(ints = {8, 64})
    void onTheHost(int numRanks) throws Exception {
        require(lengths(numRanks, 8, _ -> Device.host()), numRanks, GATHERS_ON_HOST);
    }

    @Test
    void onGpusOfSeveralNodes() throws Exception {
        EmulatedGpus.require("room for all ranks");
        for (int numRanks : new int[] {2, 8, 16}) {
            require(
                    lengths(
                            numRanks,
                            numRanks / 2,
                            rank -> Device.cuda(rank % CudaDriver.numDevices())),
                    numRanks,
                    IbgdaStart.GATHERS_OF_BUFFER);
        }
    }
}
