package io.deepep.buffer.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.Network;
import io.deepep.NormalLimits;
import io.deepep.buffer.Placed;
import io.deepep.cuda.nvshmem.NvshmemInstallation;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.lowlatency.cuda.LowLatencyGpu;
import io.deepep.spi.Meeting;
import io.deepep.spi.NodeCommunicator;
import java.time.Duration;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Which network ranks get that have places on one host, or on several. */
class NetworkChoiceTest {
    private static final NormalLimits LIMITS = NormalLimits.of(8, 128, 2, 8);

    private static Network resolve(Communicator place, Network network) {
        return NetworkChoice.resolve(Placed.options(place, 2, network, LIMITS, null));
    }

    @Test
    void oneHostReachesItsMemory() {
        assertThat(resolve(new Placed(0, 4, 4), Network.auto())).isEqualTo(Network.peerMemory());
        assertThat(resolve(new Placed(0, 4, 4), Network.peerMemory()))
                .isEqualTo(Network.peerMemory());
    }

    @Test
    void severalHostsDoNot() {
        assertThatThrownBy(() -> resolve(new Placed(3, 4, 2), Network.peerMemory()))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("2 of 4 are on that of rank 3")
                .hasMessageContaining("use Network.nvshmem");
    }

    @Test
    void severalHostsNeedNvshmem() {
        Assumptions.assumeTrue(NvshmemInstallation.find().isEmpty(), "there is an NVSHMEM");
        assertThatThrownBy(() -> resolve(new Placed(0, 4, 2), Network.auto()))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("NVSHMEM was not found")
                .hasMessageContaining("pip install nvidia-nvshmem-cu13");
    }

    @Test
    void ibgdaNeedsTheArtifactWithDeviceCode() {
        Assumptions.assumeFalse(LowLatencyGpu.hasQueueKernels(), "there is device code");
        assertThatThrownBy(() -> resolve(new Placed(0, 4, 2), Network.ibgda()))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(
                        "network=IBGDA, but there is no device code on the class path")
                .hasMessageContaining("depend on io.deepep:deepep with the classifier linux-");
    }

    @Test
    void threadsOfOneProcessCannotBePes() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            Network network = Network.nvshmem(Network.Transport.NONE);
            assertThatThrownBy(() -> resolve(group.communicator(0), network))
                    .hasMessageContaining("needs one process per rank")
                    .hasMessageContaining("deepep launch");
        }
    }

    @Test
    void theRanksOfANodeAreAGroup() {
        NodeCommunicator node = new NodeCommunicator(new Placed(5, 8, 8), new EpTopology(5, 8, 4));
        assertThat(node.rank()).isEqualTo(1);
        assertThat(node.size()).isEqualTo(4);
        assertThat(node.allGather(new byte[] {7}, Duration.ofSeconds(1)))
                .hasSize(4)
                .allSatisfy(message -> assertThat(message).containsExactly(7));
        assertThat(CudaHeaps.Reach.NODE.includes(new EpTopology(5, 8, 4), 3)).isFalse();
        assertThat(CudaHeaps.Reach.NODE.includes(new EpTopology(5, 8, 4), 4)).isTrue();
        assertThat(CudaHeaps.Reach.GROUP.includes(new EpTopology(5, 8, 4), 3)).isTrue();
    }

    /** By their ranks in the whole group, not by their places in the node. */
    @Test
    void aStepOfTheRanksOfANodeNamesThem() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        EpTopology topology = new EpTopology(rank, 4, 2);
                        Meeting meeting =
                                new Meeting(
                                        new NodeCommunicator(communicator, topology),
                                        Duration.ofSeconds(30),
                                        "no luck",
                                        "try again");
                        if (rank < 2) {
                            assertThat(meeting.together(() -> "")).hasSize(2);
                            return;
                        }
                        assertThatThrownBy(() -> meeting.together(() -> failIf(rank == 3)))
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining("no luck: rank 3: it broke");
                    });
        }
    }

    private static String failIf(boolean fails) {
        if (fails) {
            throw new IllegalStateException("it broke");
        }
        return "";
    }
}
