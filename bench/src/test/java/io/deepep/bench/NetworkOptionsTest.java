package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Network;
import java.util.List;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/** Which network a command line means. */
class NetworkOptionsTest {
    private static Network network(String arguments) {
        return ((NetworkOptions) given(arguments).userObject()).network();
    }

    private static CommandSpec given(String arguments) {
        CommandLine line = new CommandLine(new NetworkOptions());
        line.parseArgs(arguments.isEmpty() ? new String[0] : arguments.split(" "));
        return line.getCommandSpec();
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

    @Test
    void anotherProcessIsGivenTheSame() {
        for (String line :
                List.of(
                        "",
                        "--network=PEER_MEMORY",
                        "--network NVSHMEM --transport IBRC --bootstrap-interface eth0 --pure-rdma",
                        "--network=IBGDA --mtu=1024 --retries=3 --ack-timeout=14 --adaptive-routing"
                                + " --strict-ordering --nic-handler=CPU_HOST_MEMORY"
                                + " --nic-mapping gpu0=mlx5_0,*=mlx5_1 --qp-depth=512 --gid-index=3")) {
            String repeated = String.join(" ", NetworkOptions.arguments(given(line)));
            assertThat(network(repeated)).isEqualTo(network(line));
        }
        assertThat(NetworkOptions.arguments(given("--network=IBGDA --pure-rdma")))
                .containsExactlyInAnyOrder("--network=IBGDA", "--pure-rdma=true");
    }
}
