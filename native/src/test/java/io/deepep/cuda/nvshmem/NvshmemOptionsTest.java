package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Network.NicHandler;
import io.deepep.Network.Quality;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class NvshmemOptionsTest {
    private static Map<String, String> environment(NvshmemTransport transport, String... ports) {
        return ofPorts(transport, ports).environment();
    }

    private static NvshmemOptions ofPorts(NvshmemTransport transport, String... ports) {
        return FakeNvshmem.options(transport).withQueues(1, 1024, List.of(ports));
    }

    @ParameterizedTest
    @EnumSource(NvshmemTransport.class)
    void multicastIsOffWhateverIsAsked(NvshmemTransport transport) {
        assertThat(environment(transport)).containsEntry("NVSHMEM_DISABLE_NVLS", "1");
    }

    @Test
    void oneHost() {
        assertThat(FakeNvshmem.options(NvshmemTransport.NONE, "lo").environment())
                .containsOnly(
                        Map.entry("NVSHMEM_REMOTE_TRANSPORT", "none"),
                        Map.entry("NVSHMEM_IB_ENABLE_IBGDA", "0"),
                        Map.entry("NVSHMEM_DISABLE_P2P", "0"),
                        Map.entry("NVSHMEM_DISABLE_NVLS", "1"),
                        Map.entry("NVSHMEM_MAX_TEAMS", "7"),
                        Map.entry("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo"));
    }

    @Test
    void ibgdaHasNoOtherTransportToFallBackTo() {
        NvshmemOptions options =
                NvshmemOptions.of(
                                NvshmemTransport.IBGDA,
                                NicHandler.CPU_HOST_MEMORY,
                                new Quality(3, 105, 2),
                                false,
                                "")
                        .withQueues(24, 4096, List.of("mlx5_bond_2:1"));
        assertThat(options.environment())
                .containsOnly(
                        Map.entry("NVSHMEM_REMOTE_TRANSPORT", "none"),
                        Map.entry("NVSHMEM_IB_ENABLE_IBGDA", "1"),
                        Map.entry("NVSHMEM_DISABLE_P2P", "1"),
                        Map.entry("NVSHMEM_DISABLE_NVLS", "1"),
                        Map.entry("NVSHMEM_MAX_TEAMS", "7"),
                        Map.entry("NVSHMEM_QP_DEPTH", "4096"),
                        Map.entry("NVSHMEM_IBGDA_NUM_RC_PER_PE", "24"),
                        Map.entry("NVSHMEM_IBGDA_NIC_HANDLER", "cpu_host_memory"),
                        Map.entry("NVSHMEM_IBGDA_RC_MAP_BY", "cta"),
                        Map.entry("NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "0"),
                        Map.entry("NVSHMEM_IB_GID_INDEX", "3"),
                        Map.entry("NVSHMEM_IB_TRAFFIC_CLASS", "105"),
                        Map.entry("NVSHMEM_IB_SL", "2"),
                        Map.entry("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0"),
                        Map.entry("NVSHMEM_HCA_LIST", "mlx5_bond_2:1"));
    }

    /** A flag follows its block's earlier puts: with two ports as with one. */
    private static final Map<NvshmemTransport, Map<String, String>> ORDER =
            Map.of(
                    NvshmemTransport.IBGDA,
                    Map.of(
                            "NVSHMEM_IBGDA_RC_MAP_BY", "cta",
                            "NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "0"),
                    NvshmemTransport.IBRC,
                    Map.of(
                            "NVSHMEM_IB_NUM_RC_PER_DEVICE", "1",
                            "NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "0"),
                    NvshmemTransport.IBDEVX,
                    Map.of("NVSHMEM_IB_NUM_RC_PER_DEVICE", "1"));

    @ParameterizedTest
    @EnumSource(names = {"IBGDA", "IBRC", "IBDEVX"})
    void orderIsKeptWithOnePortAndWithTwo(NvshmemTransport transport) {
        for (String ports : List.of("mlx5_0:1", "mlx5_0:1,mlx5_1:1")) {
            assertThat(environment(transport, ports.split(",")))
                    .containsAllEntriesOf(ORDER.get(transport))
                    .containsEntry("NVSHMEM_HCA_LIST", ports)
                    .containsEntry("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0")
                    .doesNotContainKey("NVSHMEM_HCA_PREFIX");
        }
    }

    /** Whatever a user has set that would break it is refused by its name. */
    @ParameterizedTest
    @EnumSource(names = {"IBGDA", "IBRC", "IBDEVX"})
    void whatWouldBreakTheOrderIsRefused(NvshmemTransport transport) {
        Map<String, String> needed = environment(transport);
        Map<String, String> wrong =
                Map.of(
                        "NVSHMEM_IBGDA_RC_MAP_BY", "warp",
                        "NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "1",
                        "NVSHMEM_IB_NUM_RC_PER_DEVICE", "4",
                        "NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "1");
        wrong.forEach(
                (name, value) -> {
                    NvshmemUserSettings user = new NvshmemUserSettings(Map.of(name, value));
                    ThrowingCallable agree = () -> user.requireAgreement(needed);
                    if (ORDER.get(transport).containsKey(name)) {
                        assertThatThrownBy(agree)
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining(name + "=" + value + " is set");
                    } else {
                        assertThatCode(agree).doesNotThrowAnyException();
                    }
                });
    }

    @Test
    void renamedDevicesNeedTheirPrefixTold() {
        assertThat(environment(NvshmemTransport.IBRC, "rocep24s0:1", "rocep56s0:1"))
                .containsEntry("NVSHMEM_HCA_PREFIX", "rocep");
    }

    @ParameterizedTest
    @EnumSource(names = {"IBRC", "IBDEVX"})
    void proxyHasOneQueueToEachPe(NvshmemTransport transport) {
        NvshmemOptions options = FakeNvshmem.options(transport).withQueues(8, 128, List.of());
        assertThat(options.environment())
                .containsEntry(
                        "NVSHMEM_REMOTE_TRANSPORT", transport.name().toLowerCase(Locale.ROOT))
                .containsEntry("NVSHMEM_IB_NUM_RC_PER_DEVICE", "1")
                .containsEntry("NVSHMEM_QP_DEPTH", "128")
                .doesNotContainKey("NVSHMEM_IBGDA_NUM_RC_PER_PE");
    }

    @Test
    void signalsThatAreWritesMayNotOvertakeData() {
        assertThat(environment(NvshmemTransport.IBRC))
                .containsEntry("NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "0");
        assertThat(environment(NvshmemTransport.IBGDA))
                .doesNotContainKey("NVSHMEM_IB_ENABLE_RELAXED_ORDERING");
    }

    @Test
    void otherTransportsHaveListsOfTheirOwn() {
        assertThat(environment(NvshmemTransport.UCX, "mlx5_0:1"))
                .containsEntry("NVSHMEM_REMOTE_TRANSPORT", "ucx")
                .containsEntry("UCX_NET_DEVICES", "mlx5_0:1")
                .doesNotContainKey("NVSHMEM_HCA_LIST");
        assertThat(environment(NvshmemTransport.LIBFABRIC))
                .containsEntry("NVSHMEM_REMOTE_TRANSPORT", "libfabric")
                .containsEntry("NVSHMEM_LIBFABRIC_PROVIDER", "verbs");
    }

    static Stream<Arguments> wrongOptions() {
        return Stream.of(
                queues(0, 1024, "numQpsPerPe=0 is not positive"),
                queues(1, 1000, "qpDepth=1000 is not a power of two in [128, 32768]"),
                queues(1, 64, "qpDepth=64 is not a power of two in [128, 32768]"),
                queues(1, 65536, "qpDepth=65536 is not a power of two in [128, 32768]"),
                ports("hcas has \"mlx5_0\", which is not HCA:PORT such as mlx5_0:1", "mlx5_0"),
                ports(
                        "hcas has \"^mlx5_0:1\", which is not HCA:PORT such as mlx5_0:1",
                        "^mlx5_0:1"),
                ports(
                        "hcas=[mlx5_0:1, rocep1:1] have no common prefix, which NVSHMEM needs; rename the devices"
                                + " or use only one",
                        "mlx5_0:1",
                        "rocep1:1"),
                quality(new Quality(-2, 0, 0), "gidIndex=-2 is not in [0, 255]"),
                quality(new Quality(-1, 256, 0), "trafficClass=256 is not in [0, 255]"),
                quality(new Quality(-1, 0, 16), "serviceLevel=16 is not in [0, 15]"));
    }

    private static Arguments queues(int numQps, int depth, String message) {
        NvshmemOptions options = FakeNvshmem.options(NvshmemTransport.IBGDA);
        return wrong(message, () -> options.withQueues(numQps, depth, List.of()));
    }

    private static Arguments ports(String message, String... ports) {
        return wrong(message, () -> ofPorts(NvshmemTransport.IBGDA, ports));
    }

    private static Arguments quality(Quality quality, String message) {
        return wrong(
                message,
                () ->
                        NvshmemOptions.of(
                                NvshmemTransport.IBGDA, NicHandler.AUTO, quality, true, ""));
    }

    private static Arguments wrong(String message, ThrowingCallable options) {
        return Arguments.of(message, options);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("wrongOptions")
    void whatNvshmemWouldNotTakeIsRefused(String message, ThrowingCallable options) {
        assertThatThrownBy(options)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }
}
