package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Network.NicHandler;
import io.deepep.error.DeepEpUnavailableException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class NvshmemOptionsTest {
    private static Map<String, String> environment(
            NvshmemTransport transport, UnaryOperator<NvshmemOptions.Builder> options) {
        return options.apply(NvshmemOptions.builder(transport)).build().environment();
    }

    @ParameterizedTest
    @EnumSource(NvshmemTransport.class)
    void multicastIsOffWhateverIsAsked(NvshmemTransport transport) {
        assertThat(environment(transport, b -> b)).containsEntry("NVSHMEM_DISABLE_NVLS", "1");
    }

    @Test
    void oneHost() {
        assertThat(environment(NvshmemTransport.NONE, b -> b.bootstrapInterface("lo").numTeams(2)))
                .containsOnly(
                        Map.entry("NVSHMEM_REMOTE_TRANSPORT", "none"),
                        Map.entry("NVSHMEM_IB_ENABLE_IBGDA", "0"),
                        Map.entry("NVSHMEM_DISABLE_P2P", "0"),
                        Map.entry("NVSHMEM_DISABLE_NVLS", "1"),
                        Map.entry("NVSHMEM_MAX_TEAMS", "8"),
                        Map.entry("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo"));
    }

    @Test
    void ibgdaHasNoOtherTransportToFallBackTo() {
        assertThat(
                        environment(
                                NvshmemTransport.IBGDA,
                                b ->
                                        b.queues(24, 4096)
                                                .hcas(List.of("mlx5_bond_2:1"))
                                                .nicHandler(NicHandler.CPU_HOST_MEMORY)
                                                .gidIndex(3)
                                                .quality(105, 2)
                                                .usePeerAccess(false)))
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
        for (List<String> ports : List.of(List.of("mlx5_0:1"), List.of("mlx5_0:1", "mlx5_1:1"))) {
            assertThat(environment(transport, b -> b.hcas(ports)))
                    .containsAllEntriesOf(ORDER.get(transport))
                    .containsEntry("NVSHMEM_HCA_LIST", String.join(",", ports))
                    .containsEntry("NVSHMEM_ENABLE_NIC_PE_MAPPING", "0")
                    .doesNotContainKey("NVSHMEM_HCA_PREFIX");
        }
    }

    /** Whatever a user has set that would break it is refused by its name. */
    @ParameterizedTest
    @EnumSource(names = {"IBGDA", "IBRC", "IBDEVX"})
    void whatWouldBreakTheOrderIsRefused(NvshmemTransport transport) {
        Map<String, String> needed = environment(transport, b -> b);
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
        assertThat(
                        environment(
                                NvshmemTransport.IBRC,
                                b -> b.hcas(List.of("rocep24s0:1", "rocep56s0:1"))))
                .containsEntry("NVSHMEM_HCA_PREFIX", "rocep");
    }

    @ParameterizedTest
    @EnumSource(names = {"IBRC", "IBDEVX"})
    void proxyHasOneQueueToEachPe(NvshmemTransport transport) {
        assertThat(environment(transport, b -> b.queues(8, 128)))
                .containsEntry(
                        "NVSHMEM_REMOTE_TRANSPORT", transport.name().toLowerCase(Locale.ROOT))
                .containsEntry("NVSHMEM_IB_NUM_RC_PER_DEVICE", "1")
                .containsEntry("NVSHMEM_QP_DEPTH", "128")
                .doesNotContainKey("NVSHMEM_IBGDA_NUM_RC_PER_PE");
    }

    @Test
    void signalsThatAreWritesMayNotOvertakeData() {
        assertThat(environment(NvshmemTransport.IBRC, b -> b))
                .containsEntry("NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "0");
        assertThat(environment(NvshmemTransport.IBGDA, b -> b))
                .doesNotContainKey("NVSHMEM_IB_ENABLE_RELAXED_ORDERING");
    }

    @Test
    void otherTransportsHaveListsOfTheirOwn() {
        assertThat(environment(NvshmemTransport.UCX, b -> b.hcas(List.of("mlx5_0:1"))))
                .containsEntry("NVSHMEM_REMOTE_TRANSPORT", "ucx")
                .containsEntry("UCX_NET_DEVICES", "mlx5_0:1")
                .doesNotContainKey("NVSHMEM_HCA_LIST");
        assertThat(environment(NvshmemTransport.LIBFABRIC, b -> b))
                .containsEntry("NVSHMEM_REMOTE_TRANSPORT", "libfabric")
                .containsEntry("NVSHMEM_LIBFABRIC_PROVIDER", "verbs");
    }

    static Stream<Arguments> wrongOptions() {
        return Stream.of(
                wrong(b -> b.queues(0, 1024), "numQpsPerPe=0 is not positive"),
                wrong(b -> b.queues(1, 1000), "qpDepth=1000 is not a power of two in [128, 32768]"),
                wrong(b -> b.queues(1, 64), "qpDepth=64 is not a power of two in [128, 32768]"),
                wrong(
                        b -> b.queues(1, 65536),
                        "qpDepth=65536 is not a power of two in [128, 32768]"),
                wrong(
                        b -> b.hcas(List.of("mlx5_0")),
                        "hcas has \"mlx5_0\", which is not HCA:PORT such as mlx5_0:1"),
                wrong(
                        b -> b.hcas(List.of("^mlx5_0:1")),
                        "hcas has \"^mlx5_0:1\", which is not HCA:PORT such as mlx5_0:1"),
                wrong(
                        b -> b.hcas(List.of("mlx5_0:1", "rocep1:1")),
                        "hcas=[mlx5_0:1, rocep1:1] have no common prefix, which NVSHMEM needs; rename the devices"
                                + " or use only one"),
                wrong(b -> b.gidIndex(-1), "gidIndex=-1 is not in [0, 255]"),
                wrong(b -> b.quality(256, 0), "trafficClass=256 is not in [0, 255]"),
                wrong(b -> b.quality(0, 16), "serviceLevel=16 is not in [0, 15]"),
                wrong(b -> b.numTeams(251), "numTeams=251 is not in [0, 250]"));
    }

    private static Arguments wrong(UnaryOperator<NvshmemOptions.Builder> options, String message) {
        return Arguments.of(message, options);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("wrongOptions")
    void whatNvshmemWouldNotTakeIsRefused(
            String message, UnaryOperator<NvshmemOptions.Builder> options) {
        NvshmemOptions.Builder builder =
                options.apply(NvshmemOptions.builder(NvshmemTransport.IBGDA));
        assertThatThrownBy(builder::build)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }
}
