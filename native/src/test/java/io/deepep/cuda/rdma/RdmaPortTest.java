package io.deepep.cuda.rdma;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Network;
import io.deepep.error.DeepEpUnavailableException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which address a port is reached by, and what settings may be. */
class RdmaPortTest {
    private static final long LINK_LOCAL = 0xfe80_0000_0000_0000L;
    private static final long IPV4 = 0xffff_0a00_0001L;
    private static final int FIND = Network.Quality.FIND_GID;

    private static RdmaPort port(boolean ethernet, Gid... gids) {
        return new RdmaPort("mlx5_0", 1, true, ethernet, false, 7, 5, 1 << 30, List.of(gids));
    }

    private static String type(int idx) {
        return idx % 2 == 0 ? "IB/RoCE v1" : "RoCE v2";
    }

    @Test
    void onRoceAnIpv4AddressOfVersion2() {
        RdmaPort port =
                port(
                        true,
                        new Gid(0, LINK_LOCAL, 5),
                        new Gid(1, LINK_LOCAL, 5),
                        new Gid(2, 0, IPV4),
                        new Gid(3, 0, IPV4),
                        new Gid(5, 0, 0));
        Endpoint found = Endpoint.of(port, FIND, RdmaPortTest::type);
        assertThat(found.gid().idx()).isEqualTo(3);
        assertThat(found.isVersion2()).isTrue();
        assertThat(Endpoint.of(port, 2, RdmaPortTest::type).isVersion2()).isFalse();
        assertThatThrownBy(() -> Endpoint.of(port, 5, RdmaPortTest::type))
                .hasMessageContaining("port mlx5_0:1 has no address at gidIndex=5; it has [fe80:");
    }

    /** Each is better than the next, wherever they are in the table. */
    @Test
    void onRoceTheOrderOfAddresses() {
        long global = 0x2001_0db8_0000_0000L;
        List<Gid> bestFirst =
                List.of(
                        new Gid(13, 0, IPV4),
                        new Gid(9, global, 5),
                        new Gid(11, global, 5),
                        new Gid(5, LINK_LOCAL, 5),
                        new Gid(7, LINK_LOCAL, IPV4), // ends as an IPv4 address does
                        new Gid(12, 0, IPV4),
                        new Gid(8, 0, IPV4 + (1L << 48)), // not mapped
                        new Gid(2, LINK_LOCAL, 5));
        for (int i = 0; i < bestFirst.size(); i++) {
            List<Gid> rest = bestFirst.subList(i, bestFirst.size());
            for (List<Gid> order : List.of(rest, rest.reversed())) {
                List<Gid> table = new ArrayList<>(order);
                table.add(new Gid(15, 0, 0)); // an empty place
                RdmaPort port = port(true, table.toArray(Gid[]::new));
                Gid found = Endpoint.of(port, FIND, RdmaPortTest::type).gid();
                assertThat(found).as("of %s", order).isEqualTo(bestFirst.get(i));
            }
        }
    }

    @Test
    void aPortThatIsDownIsRefused() {
        List<Gid> gids = List.of(new Gid(0, LINK_LOCAL, 5));
        RdmaPort down = new RdmaPort("mlx5_0", 1, false, false, false, 7, 5, 1 << 30, gids);
        assertThatThrownBy(() -> Endpoint.of(down, FIND, idx -> ""))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("port mlx5_0:1 is not active");
    }

    @Test
    void onInfiniBandTheFirst() {
        RdmaPort port = port(false, new Gid(0, LINK_LOCAL, 5), new Gid(1, 0, IPV4));
        assertThat(Endpoint.of(port, FIND, idx -> "").gid().idx()).isZero();
    }

    @ParameterizedTest
    @CsvSource({"0, 5, 4, 4", "1024, 5, 5, 3", "4096, 3, 5, 3"})
    void packetsFitBothPorts(int wanted, int own, int peers, int mtu) {
        Network.Path path = new Network.Path(Network.Quality.DEFAULT, wanted, 7, 20, false);
        assertThat(Paths.mtu(path, own, peers)).isEqualTo(mtu);
    }

    @ParameterizedTest
    @CsvSource({
        "-2, 0, 0, 0, 7, 20, gidIndex=-2",
        "0, 256, 0, 0, 7, 20, trafficClass=256",
        "0, 0, 16, 0, 7, 20, serviceLevel=16",
        "0, 0, 0, 1500, 7, 20, mtu=1500",
        "0, 0, 0, 0, 8, 20, retries=8",
        "0, 0, 0, 0, 7, 0, ackTimeout=0"
    })
    void settingsOutsideTheirRanges(
            int gid, int tc, int sl, int mtu, int retries, int ackTimeout, String message) {
        Network.Quality quality = new Network.Quality(gid, tc, sl);
        Network.Path path = new Network.Path(quality, mtu, retries, ackTimeout, false);
        assertThatThrownBy(() -> Paths.check(path))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining(message);
    }
}
