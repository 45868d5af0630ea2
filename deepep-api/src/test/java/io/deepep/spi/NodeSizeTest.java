package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.error.RankMismatchException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NodeSizeTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private static List<NodeSize.Place> hosts(Integer... localSizes) {
        return Stream.of(localSizes)
                .map(size -> new NodeSize.Place(NodeSize.Call.OPEN, 0, size, ""))
                .toList();
    }

    /** Ranks of hosts with two each. */
    private static List<NodeSize.Place> domains(String... domains) {
        return Stream.of(domains)
                .map(domain -> new NodeSize.Place(NodeSize.Call.OPEN, 0, 2, domain))
                .toList();
    }

    @Test
    void hostsAreNodes() {
        assertThat(NodeSize.of(hosts(2, 2, 2, 2))).isEqualTo(2);
        assertThat(NodeSize.of(hosts(1))).isEqualTo(1);
    }

    @Test
    void domainsAreNodesWhicheverHostsTheyHave() {
        assertThat(NodeSize.of(domains("a.1", "a.1", "a.1", "a.1"))).isEqualTo(4);
        assertThat(NodeSize.of(domains("a.1", "a.2", "a.3", "a.4"))).isEqualTo(1);
        assertThat(NodeSize.of(domains("a.1", "a.1", "a.1", "b.1", "b.1", "b.1"))).isEqualTo(3);
    }

    @Test
    void hostsCountWhereAGpuNamesNoDomain() {
        assertThat(NodeSize.of(domains("a.1", "a.1", "a.1", ""))).isEqualTo(2);
    }

    @Test
    void differentSizesAreRefused() {
        assertThatThrownBy(() -> NodeSize.of(hosts(3, 3, 3, 1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("the host of rank 0 has 3 and that of rank 3 has 1; ");
        assertThatThrownBy(() -> NodeSize.of(domains("a", "a", "b", "b", "b")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("the NVLink domain of rank 0 has 2 and that of rank 2 has 3");
    }

    @Test
    void ranksOfADomainAreInARow() {
        assertThatThrownBy(() -> NodeSize.of(domains("a", "b", "a", "b")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(
                        "such as rank 1, are between those of the domain of rank 2 (a)");
    }

    @Test
    void partsAreOfOneSize() {
        assertThat(Stream.of(1, 6, 16, 72, 73, 128).map(NodeSize::part))
                .containsExactly(1, 6, 16, 72, 1, 64);
    }

    @Test
    void allRanksComeToTheSame() throws Exception {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        String domain = communicator.rank() < 2 ? "a.1" : "a.2";
                        assertThat(agree(communicator, 0, domain, TIMEOUT)).isEqualTo(2);
                        assertThat(agree(communicator, 0, "", TIMEOUT)).isEqualTo(4);
                        assertThat(agree(communicator, 2, "", TIMEOUT)).isEqualTo(2);
                    });
        }
    }

    @Test
    void allLearnThatOneRankAloneGaveASize() throws Exception {
        for (int culprit : new int[] {0, 2}) {
            int other = culprit == 0 ? 1 : 0;
            try (InProcessGroup group = InProcessGroup.of(4)) {
                group.run(
                        communicator -> {
                            int given = communicator.rank() == culprit ? 2 : 0;
                            assertThatThrownBy(() -> agree(communicator, given, "", TIMEOUT))
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageContaining(
                                            "rank %s gave ranksPerNode=2, but rank %s gave none; "
                                                    .formatted(culprit, other));
                        });
            }
        }
    }

    private static int agree(
            Communicator communicator, int given, String domain, Duration timeout) {
        return NodeSize.agree(communicator, NodeSize.Call.OPEN, given, domain, timeout);
    }

    /** Those that have a buffer say what its nodes are, those that join may. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void whoJoinsTakesTheNodesThatThereAre(int joining) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        int known = communicator.rank() == joining ? 0 : 2;
                        assertThat(
                                        NodeSize.agree(
                                                communicator,
                                                NodeSize.Call.JOIN,
                                                known,
                                                "",
                                                TIMEOUT))
                                .isEqualTo(2);
                    });
        }
    }

    @Test
    void differentCallsAreRefusedOnAllRanks() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        NodeSize.Call call = NodeSize.Call.values()[communicator.rank()];
                        assertThatThrownBy(() -> NodeSize.agree(communicator, call, 0, "", TIMEOUT))
                                .isInstanceOf(RankMismatchException.class)
                                .hasMessageContaining(
                                        "rank 0 has open(), rank 1 has join() or admit()");
                    });
        }
    }

    /** As a barrier, which says nothing; or something else of the user's. */
    @Test
    void whoMakesAnotherCallIsNamed() throws InterruptedException {
        for (String other : new String[] {"", "OPEN", "join 1 1 ", "OPEN 99999999999 1 "}) {
            try (InProcessGroup group = InProcessGroup.of(2)) {
                group.run(
                        communicator -> {
                            if (communicator.rank() == 1) {
                                communicator.allGather(
                                        other.getBytes(StandardCharsets.UTF_8), TIMEOUT);
                                return;
                            }
                            assertThatThrownBy(() -> agree(communicator, 2, "", TIMEOUT))
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageContaining("open: rank 1 makes a different call");
                        });
            }
        }
    }
}
