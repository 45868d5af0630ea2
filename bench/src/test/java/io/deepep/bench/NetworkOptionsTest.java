package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Network;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** Which network a command line means. */
class NetworkOptionsTest {
    private static Network network(String arguments) {
        return CommandLine.populateCommand(new NetworkOptions(), arguments.split(" ")).network();
    }

    @Test
    void withoutOptionsTheNetworkIsTheLibrarys() {
        assertThat(network("--network=IBGDA")).isEqualTo(Network.ibgda());
        assertThat(network("--network=NVSHMEM --transport=IBRC"))
                .isEqualTo(Network.nvshmem(Network.Transport.IBRC));
    }

    @Test
    void bothNetworksHaveAQuality() {
        String options = " --gid-index=3 --traffic-class=106 --service-level=5";
        Network.Quality quality = new Network.Quality(3, 106, 5);
        assertThat(network("--network=NVSHMEM --transport=IBGDA" + options))
                .isEqualTo(Network.nvshmem(Network.Transport.IBGDA).withQuality(quality));
        assertThat(network("--network=IBGDA" + options))
                .isEqualTo(Network.ibgda().withPath(new Network.Path(quality, 0, 7, 20, false)));
    }

    @Test
    void ibgdaHasMore() {
        assertThat(
                        network(
                                "--network=IBGDA --mtu=1024 --retries=3 --ack-timeout=14 --adaptive-routing"
                                        + " --strict-ordering --nic-handler=CPU_HOST_MEMORY"
                                        + " --nic-mapping=*=mlx5_1 --qp-depth=512 --pure-rdma"))
                .isEqualTo(
                        Network.ibgda()
                                .withPath(
                                        new Network.Path(
                                                Network.Quality.DEFAULT, 1024, 3, 14, true))
                                .withRelaxedOrdering(false)
                                .withNicHandler(Network.NicHandler.CPU_HOST_MEMORY)
                                .withNicMapping("*=mlx5_1")
                                .withQpDepth(512)
                                .withPureRdma(true));
    }
}
