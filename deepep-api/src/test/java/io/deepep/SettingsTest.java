package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The records that configure a buffer: what they refuse, and with what words. */
class SettingsTest {
    private static void requireMessage(ThrowingCallable call, String message) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    @Test
    void topology() {
        requireMessage(() -> new EpTopology(0, 0, 1), "numRanks=0 must be at least 1");
        requireMessage(() -> new EpTopology(4, 4, 4), "rank=4 is not in [0, numRanks=4)");
        requireMessage(() -> new EpTopology(-1, 4, 4), "rank=-1 is not in");
        requireMessage(() -> new EpTopology(0, 73, 73), "numNvlRanks=73 is not in [1, 72]");
        requireMessage(() -> new EpTopology(0, 4, 0), "numNvlRanks=0 is not in [1, 72]");
        requireMessage(
                () -> new EpTopology(0, 6, 4), "numRanks=6 is not a multiple of numNvlRanks=4");
    }

    @Test
    void groups() {
        for (Device.Kind kind : Device.Kind.values()) {
            for (GroupLimits limits :
                    List.of(GroupLimits.normal(kind), GroupLimits.lowLatency(kind))) {
                int most = limits.maxRanks();
                int perNode = EpTopology.MAX_NVL_RANKS;
                limits.require(new EpTopology(0, perNode, perNode));
                limits.require(new EpTopology(0, most, 1));
                EpTopology larger = new EpTopology(0, most + 1, 1);
                requireMessage(
                        () -> limits.require(larger),
                        limits.name()
                                + " takes at most "
                                + limits.allowed()
                                + ", but the group has ");
                assertThat(limits.refusal(larger).orElseThrow())
                        .contains("has " + (most + 1) + ", 1 per node; use smaller groups");
            }
        }
        requireMessage(
                () -> GroupLimits.normal(Device.Kind.CUDA).require(new EpTopology(0, 2088, 72)),
                "normal mode on GPUs takes at most 2048 ranks, 72 per node, but the group has 2088, 72 per node;"
                        + " use smaller groups");
        assertThat(GroupLimits.lowLatency(Device.Kind.CUDA).refusal(new EpTopology(0, 4096, 8)))
                .hasValueSatisfying(
                        why ->
                                assertThat(why)
                                        .startsWith("low-latency mode on GPUs takes at most 256")
                                        .endsWith(", or normal mode"));
        assertThat(GroupLimits.lowLatency(Device.Kind.HOST).maxRanks()).isEqualTo(2048);
    }

    @Test
    void ranksNumberNodesFirst() {
        for (int numNvlRanks = 1; numNvlRanks <= EpTopology.MAX_NVL_RANKS; numNvlRanks++) {
            EpTopology topology = new EpTopology(0, 3 * numNvlRanks, numNvlRanks);
            assertThat(topology.numRdmaRanks()).isEqualTo(3);
            assertThat(topology.isInternode()).isTrue();
            for (int rank = 0; rank < topology.numRanks(); rank++) {
                EpTopology own = topology.withRank(rank);
                assertThat(own.rankOf(own.rdmaRank(), own.nvlRank())).isEqualTo(rank);
                assertThat(own.nvlRank()).isBetween(0, numNvlRanks - 1);
            }
        }
        assertThat(new EpTopology(3, 8, 8).isInternode()).isFalse();
    }

    @Test
    void config() {
        requireMessage(
                () -> new Config(3, 1, 2), "numSms=3 must be 1 or an even number of at least 2");
        requireMessage(
                () -> new Config(0, 1, 2), "numSms=0 must be 1 or an even number of at least 2");
        requireMessage(() -> new Config(2, 0, 2), "rdmaSendChunk=0 must be at least 1");
        requireMessage(
                () -> new Config(2, 2, 3), "rdmaSendChunk=2 exceeds half of rdmaRecvChunk=3");
        assertThat(new Config(2, 1, 2).withNumSms(6).numChannels()).isEqualTo(3);
    }

    @Test
    void everyRankCountHasARecommendation() {
        for (int numRanks = 1; numRanks <= 256; numRanks++) {
            assertThat(Config.recommended(numRanks).numChannels()).isPositive();
        }
        requireMessage(() -> Config.recommended(0), "numRanks=0 must be at least 1");
    }

    @Test
    void normalLimits() {
        requireMessage(() -> NormalLimits.of(0, 8, 1, 1), "maxTokens=0 must be at least 1");
        requireMessage(
                () -> NormalLimits.of(1, 12, 1, 1), "hidden=12 is not a positive multiple of 8");
        requireMessage(
                () -> NormalLimits.of(1, 0, 1, 1), "hidden=0 is not a positive multiple of 8");
        requireMessage(() -> NormalLimits.of(1, 8, 33, 1), "maxTopk=33 is not in [1, 32]");
        requireMessage(() -> NormalLimits.of(1, 8, 0, 1), "maxTopk=0 is not in [1, 32]");
        requireMessage(() -> NormalLimits.of(1, 8, 1, 0), "maxExperts=0 must be at least 1");
        requireMessage(() -> new NormalLimits(1, 8, 1, 1, -1), "maxRecvTokens=-1 is negative");
        assertThat(NormalLimits.of(5, 8, 1, 1).recvCapacity(3)).isEqualTo(15);
        assertThat(new NormalLimits(5, 8, 1, 1, 7).recvCapacity(3)).isEqualTo(7);
        NormalLimits huge = NormalLimits.of(Integer.MAX_VALUE, 8, 1, 1);
        assertThatThrownBy(() -> huge.recvCapacity(2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("lower maxTokens or give maxRecvTokens");
    }

    @Test
    void lowLatencyLimits() {
        requireMessage(() -> new LowLatencyLimits(0, 128, 1, 1), "maxTokens=0 is not in [1, 1024]");
        requireMessage(() -> new LowLatencyLimits(1025, 128, 1, 1), "maxTokens=1025 is not in");
        requireMessage(
                () -> new LowLatencyLimits(1, 136, 1, 1),
                "hidden=136 is not a positive multiple of 128");
        requireMessage(() -> new LowLatencyLimits(1, 128, 1, 0), "numExperts=0 must be at least 1");
        requireMessage(() -> new LowLatencyLimits(1, 128, 33, 1), "maxTopk=33 is not in [1, 32]");
        assertThat(new LowLatencyLimits(1, 128, 1, 24).numLocalExperts(8)).isEqualTo(3);
    }

    @Test
    void devices() {
        assertThat(Device.host()).hasToString("host");
        assertThat(Device.cuda(3)).hasToString("cuda:3");
        requireMessage(() -> Device.cuda(-1), "index=-1 is negative");
        requireMessage(() -> new Device(Device.Kind.HOST, 1), "index=1 is not valid for the host");
    }

    @Test
    void bufferOptions() {
        Config config = Config.recommended(1);
        LowLatencyLimits three = new LowLatencyLimits(1, 128, 1, 3);
        try (InProcessGroup group = InProcessGroup.of(2)) {
            EpTopology topology = new EpTopology(0, 2, 2);
            NormalLimits normal = NormalLimits.of(1, 8, 1, 2);
            Options options =
                    (n, l, bytes, timeout) ->
                            new BufferOptions(
                                    group.communicator(0),
                                    topology,
                                    Device.host(),
                                    null,
                                    Network.auto(),
                                    n,
                                    l,
                                    bytes,
                                    0,
                                    config,
                                    config,
                                    NormalDefaults.recommended(2),
                                    timeout,
                                    null,
                                    false,
                                    List.of());
            Duration second = Duration.ofSeconds(1);
            requireMessage(() -> options.of(null, null, 0, second), "at least one of them");
            requireMessage(() -> options.of(normal, null, -1, second), "numNvlBytes=-1");
            requireMessage(() -> options.of(normal, null, 0, Duration.ZERO), "timeout=PT0S");
            requireMessage(
                    () -> options.of(null, three, 0, second),
                    "numExperts=3 is not a multiple of numRanks=2; every rank must hold");
            requireMessage(
                    () -> Buffer.builder(group.communicator(0)).ranksPerNode(0), "ranksPerNode=0");
            requireMessage(
                    () -> Buffer.builder(group.communicator(0)).ranksPerNode(73),
                    "ranksPerNode=73 is not in [1, 72]");
        }
    }

    /** What is missing is named by the call that lacks it. */
    @Test
    void nulls() {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            Buffer.Builder builder = Buffer.builder(group.communicator(0));
            requireNamed(() -> builder.device(null), "device");
            requireNamed(() -> builder.network(null), "network");
            requireNamed(() -> builder.timeout(null), "timeout");
            requireNamed(() -> builder.startTimeout(null), "startTimeout");
        }
    }

    private static void requireNamed(ThrowingCallable call, String name) {
        assertThatThrownBy(call).isInstanceOf(NullPointerException.class).hasMessage(name);
    }

    /** The options that a test above varies. */
    private interface Options {
        BufferOptions of(NormalLimits normal, LowLatencyLimits fast, long bytes, Duration timeout);
    }
}
