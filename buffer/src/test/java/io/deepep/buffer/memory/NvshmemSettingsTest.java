package io.deepep.buffer.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.LowLatencyLimits;
import io.deepep.Network;
import io.deepep.NormalLimits;
import io.deepep.buffer.Placed;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.nvshmem.NvshmemOptions;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import io.deepep.cuda.nvshmem.NvshmemUserSettings;
import io.deepep.cuda.nvshmem.PeMap;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.sysfs.SysfsTree;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What NVSHMEM is started with for a buffer: on a host whose devices were recorded. */
class NvshmemSettingsTest {
    private static final NormalLimits NORMAL = NormalLimits.of(4096, 7168, 8, 256);
    private static final LowLatencyLimits LOW_LATENCY = new LowLatencyLimits(128, 7168, 8, 256);

    private static final GpuSharing ALONE =
            new GpuSharing(1, new GpuShare(132, 1), List.of(0, 1, 2, 3));
    private static final GpuSharing IN_PAIRS =
            new GpuSharing(2, new GpuShare(132, 2), List.of(0, 1, 0, 1));

    @TempDir private Path folder;

    private HostTopology host;

    @BeforeEach
    void readHost() {
        host = HostTopology.read(SysfsTree.build("h20-8gpu-4bond.txt", folder));
    }

    private NvshmemOptions settings(int gpu, Network.Nvshmem network) {
        String address = host.gpus().get(gpu).address().toString();
        BufferOptions options = Placed.options(new Placed(0, 16, 8), 8, network, NORMAL, null);
        return settings(options, network, address, host, Map.of());
    }

    private static NvshmemOptions settings(
            BufferOptions options,
            Network.Nvshmem network,
            String gpu,
            HostTopology host,
            Map<String, String> variables) {
        return NvshmemSettings.of(
                options.communicator(),
                network,
                NvshmemQueues.of(options),
                gpu,
                host,
                new NvshmemUserSettings(variables));
    }

    @Test
    void eachGpuHasItsOwnNic() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        assertThat(settings(1, network).hcas()).containsExactly("mlx5_bond_0:1");
        assertThat(settings(3, network).hcas()).containsExactly("mlx5_bond_1:1");
        assertThat(settings(6, network).hcas()).containsExactly("mlx5_bond_3:1");
    }

    @Test
    void theUsersMappingGoesFirst() {
        Network.Nvshmem network =
                Network.nvshmem(Network.Transport.IBRC).withNicMapping("gpu1=mlx5_bond_2");
        assertThat(settings(1, network).hcas()).containsExactly("mlx5_bond_2:1");
        assertThatThrownBy(() -> settings(1, network.withNicMapping("gpu1=mlx5_77")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("mlx5_77");
    }

    /** All its ports are shown to NVSHMEM, whatever the transport; each keeps to one of them. */
    @ParameterizedTest
    @EnumSource(
            value = Network.Transport.class,
            names = {"IBGDA", "IBRC", "IBDEVX"})
    void twoPortsOfAGpuAreBothNamed(Network.Transport transport) {
        Network.Nvshmem network =
                Network.nvshmem(transport).withNicMapping("gpu1=mlx5_bond_2+mlx5_bond_3");
        assertThat(settings(1, network).hcas()).containsExactly("mlx5_bond_2:1", "mlx5_bond_3:1");
        assertThat(settings(0, network).hcas()).hasSize(1);
    }

    @Test
    void aHostWithoutNicsIsRefusedWhereOneIsNeeded() {
        HostTopology bare = new HostTopology(host.gpus(), List.of(), List.of());
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        String gpu = host.gpus().getFirst().address().toString();
        BufferOptions options = Placed.options(new Placed(0, 16, 8), 8, network, NORMAL, null);
        assertThatThrownBy(() -> settings(options, network, gpu, bare, Map.of()))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("over IBGDA, but this host has no usable RDMA port");
        Network.Nvshmem none = Network.nvshmem(Network.Transport.NONE);
        assertThat(settings(options, none, gpu, bare, Map.of()).hcas()).isEmpty();
    }

    @Test
    void queuesFollowFromTheKernelsUnlessGiven() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        Config config = Config.recommended(16);
        assertThat(settings(0, network).numQpsPerPe()).isEqualTo(config.numSms());
        assertThat(settings(0, network).qpDepth()).isEqualTo(256);
        assertThat(settings(0, network.withQpDepth(2048)).qpDepth()).isEqualTo(2048);
        assertThatThrownBy(() -> settings(0, network.withQpDepth(1000)))
                .hasMessageContaining("qpDepth=1000 is not a power of two");
    }

    /** A ring told in single rows takes more entries; so do many batches of tokens. */
    @Test
    void queuesGrowWithWhatABlockPosts() {
        Config single = new Config(24, 1, 256);
        assertThat(NvshmemQueues.normal(single)).isEqualTo(new NvshmemQueues(24, 4096));
        assertThat(NvshmemQueues.lowLatency(LOW_LATENCY, 16)).isEqualTo(new NvshmemQueues(16, 256));
        LowLatencyLimits manyTokens = new LowLatencyLimits(1024, 7168, 8, 256);
        assertThat(NvshmemQueues.lowLatency(manyTokens, 16)).isEqualTo(new NvshmemQueues(16, 512));
        BufferOptions both =
                Placed.options(
                        new Placed(0, 16, 8),
                        8,
                        Network.nvshmem(Network.Transport.IBGDA),
                        NORMAL,
                        LOW_LATENCY);
        assertThat(NvshmemQueues.of(both)).isEqualTo(new NvshmemQueues(20, 256));
        assertThat(new NvshmemQueues(20, 1024).bytesPerPe()).isEqualTo(20 * 1024 * 128);
    }

    @Test
    void railsUnlessAllRanksMustBeReachedOrGpusAreShared() {
        Network network = Network.nvshmem(Network.Transport.NONE);
        BufferOptions normal = Placed.options(new Placed(1, 4, 4), 2, network, NORMAL, null);
        BufferOptions both = Placed.options(new Placed(1, 4, 4), 2, network, NORMAL, LOW_LATENCY);
        assertThat(NvshmemSettings.peMap(normal, ALONE).world()).isEqualTo(PeMap.World.RAIL);
        assertThat(NvshmemSettings.peMap(normal, IN_PAIRS).world()).isEqualTo(PeMap.World.GLOBAL);
        assertThat(NvshmemSettings.peMap(both, ALONE).world()).isEqualTo(PeMap.World.GLOBAL);
    }

    @Test
    void masksNeedOneWorldOfAllRanks() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.NONE);
        BufferOptions masks =
                Placed.options(new Placed(1, 4, 4), 2, network.withMasks(true), NORMAL, null);
        assertThat(NvshmemSettings.masks(masks)).isTrue();
        assertThat(NvshmemSettings.peMap(masks, ALONE).world()).isEqualTo(PeMap.World.GLOBAL);
        BufferOptions none = Placed.options(new Placed(1, 4, 4), 2, network, NORMAL, null);
        assertThat(NvshmemSettings.masks(none)).isFalse();
    }

    @Test
    void kernelsNumberTheirPeersByNode() {
        Network network = Network.nvshmem(Network.Transport.NONE);
        BufferOptions normal = Placed.options(new Placed(5, 8, 8), 4, network, NORMAL, null);
        NvshmemNetwork rail =
                new NvshmemNetwork(null, NvshmemSettings.peMap(normal, ALONE), null, false);
        assertThat(rail.firstPe()).isZero();
        assertThat(rail.peStride()).isEqualTo(1);
        NvshmemNetwork global =
                new NvshmemNetwork(null, NvshmemSettings.peMap(normal, IN_PAIRS), null, false);
        assertThat(global.firstPe()).isEqualTo(1);
        assertThat(global.peStride()).isEqualTo(4);
    }

    @Test
    void processesOfOneHostMeetOverItsLoopback() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.NONE);
        assertThat(settings(0, network).bootstrapInterface()).isEmpty();
        assertThat(settings(0, network.withBootstrapInterface("ib0")).bootstrapInterface())
                .isEqualTo("ib0");
        BufferOptions options = Placed.options(new Placed(0, 4, 4), 2, network, NORMAL, null);
        String gpu = host.gpus().getFirst().address().toString();
        assertThat(settings(options, network, gpu, host, Map.of()).bootstrapInterface())
                .isEqualTo("lo");
    }

    @Test
    void addressAndQualityOfServiceAreTheUsersChoice() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        assertThat(settings(0, network).quality()).isEqualTo(Network.Quality.DEFAULT);
        Network.Quality chosen = new Network.Quality(3, 106, 5);
        assertThat(settings(0, network.withQuality(chosen)).quality()).isEqualTo(chosen);
    }

    private NvshmemOptions settings(Network.Nvshmem network, Map<String, String> variables) {
        BufferOptions options = Placed.options(new Placed(0, 16, 8), 8, network, NORMAL, null);
        String gpu = host.gpus().getFirst().address().toString();
        return settings(options, network, gpu, host, variables);
    }

    @Test
    void variablesDecideWhatTheNetworkLeavesOpen() {
        Map<String, String> variables =
                Map.of(
                        "NVSHMEM_QP_DEPTH", "512",
                        "NVSHMEM_IBGDA_NUM_RC_PER_PE", "3",
                        "NVSHMEM_IBGDA_NIC_HANDLER", "cpu_host_memory",
                        "NVSHMEM_IB_GID_INDEX", "3",
                        "NVSHMEM_IB_TRAFFIC_CLASS", "106",
                        "NVSHMEM_IB_SL", "2",
                        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "ib7",
                        "NVSHMEM_HCA_LIST", "mlx5_bond_3:1",
                        "NVSHMEM_DISABLE_P2P", "1");
        NvshmemOptions used = settings(Network.nvshmem(Network.Transport.IBGDA), variables);
        assertThat(used.qpDepth()).isEqualTo(512);
        assertThat(used.numQpsPerPe()).isEqualTo(3);
        assertThat(used.nicHandler()).isEqualTo(Network.NicHandler.CPU_HOST_MEMORY);
        assertThat(used.quality()).isEqualTo(new Network.Quality(3, 106, 2));
        assertThat(used.bootstrapInterface()).isEqualTo("ib7");
        assertThat(used.hcas()).isEmpty();
        assertThat(used.usePeerAccess()).isFalse();
        Network.Nvshmem chosen =
                Network.nvshmem(Network.Transport.IBGDA)
                        .withQpDepth(1024)
                        .withNicHandler(Network.NicHandler.GPU)
                        .withQuality(new Network.Quality(1, 4, 5))
                        .withNicMapping("gpu0=mlx5_bond_2")
                        .withBootstrapInterface("eth0");
        NvshmemOptions own = settings(chosen, variables);
        assertThat(own.qpDepth()).isEqualTo(1024);
        assertThat(own.nicHandler()).isEqualTo(Network.NicHandler.GPU);
        assertThat(own.quality()).isEqualTo(new Network.Quality(1, 4, 5));
        assertThat(own.hcas()).containsExactly("mlx5_bond_2:1");
        assertThat(own.bootstrapInterface()).isEqualTo("eth0");
    }

    @Test
    void variablesThatNvshmemDoesNotKnowAreRefused() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        assertThatThrownBy(() -> settings(network, Map.of("NVSHMEM_IBGDA_NIC_HANDLER", "somebody")))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(
                        "NVSHMEM_IBGDA_NIC_HANDLER=somebody is not a value that NVSHMEM knows");
        assertThatThrownBy(() -> settings(network, Map.of("NVSHMEM_QP_DEPTH", "1000")))
                .hasMessageContaining("qpDepth=1000 is not a power of two");
    }

    @Test
    void pureRdmaNeedsATransport() {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA);
        assertThat(settings(network, Map.of()).usePeerAccess()).isTrue();
        assertThat(settings(network.withPureRdma(true), Map.of()).usePeerAccess()).isFalse();
        Network.Nvshmem none = Network.nvshmem(Network.Transport.NONE).withPureRdma(true);
        assertThatThrownBy(() -> settings(none, Map.of()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("transport=NONE reaches no other GPU without peer access");
    }

    @ParameterizedTest
    @EnumSource(Network.Transport.class)
    void everyTransportOfTheApiIsOneOfNvshmem(Network.Transport transport) {
        assertThat(settings(0, Network.nvshmem(transport)).transport())
                .isEqualTo(NvshmemTransport.valueOf(transport.name()));
    }

    @ParameterizedTest
    @EnumSource(Network.NicHandler.class)
    void everyHandlerOfTheApiIsOneOfNvshmem(Network.NicHandler handler) {
        Network.Nvshmem network = Network.nvshmem(Network.Transport.IBGDA).withNicHandler(handler);
        assertThat(settings(0, network).nicHandler()).isEqualTo(handler);
    }
}
