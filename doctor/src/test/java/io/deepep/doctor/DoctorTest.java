package io.deepep.doctor;

import static io.deepep.doctor.FixtureMachine.finding;
import static io.deepep.doctor.FixtureMachine.way;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.nvshmem.NvshmemTransport;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The doctor on a made-up machine that has everything, and with single things taken away. */
class DoctorTest {
    private static final String NVSHMEM_FOLDER =
            "usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/lib/";

    private static final List<NicFacts> CARDS = FixtureMachine.cards();

    @TempDir private Path root;
    private FixtureMachine machine;

    @BeforeEach
    void create() {
        machine = new FixtureMachine(root);
    }

    private DoctorReport examine() {
        return examine(FixtureMachine.gpus(true));
    }

    private DoctorReport examine(GpuFacts gpus) {
        return machine.examine(gpus, CARDS);
    }

    private DoctorReport examine(List<NicFacts> cards) {
        return machine.examine(FixtureMachine.gpus(true), cards);
    }

    private DoctorReport examine(String nicMapping) {
        GpuFacts gpus = FixtureMachine.gpus(true);
        return DoctorReport.of(machine.machine(), "1 (abc)", true, gpus, CARDS, nicMapping);
    }

    /** Whether the host backend, one node, IBRC and IBGDA can run. */
    private static List<Boolean> possible(DoctorReport report) {
        return List.of(
                report.modes().getFirst().possible(),
                way(report, Way.ONE_NODE).possible(),
                way(report, Way.severalNodes(NvshmemTransport.IBRC)).possible(),
                way(report, Way.severalNodes(NvshmemTransport.IBGDA)).possible());
    }

    @Test
    void aSystemWithoutProcIsNamedByJava(@TempDir Path empty) {
        assertThat(HostFacts.of(new Machine(empty, Map.of()), "1").system())
                .isEqualTo(System.getProperty("os.name"));
    }

    @Test
    void machineWithEverythingIsHealthy() {
        DoctorReport report = examine();
        assertThat(report.host().name()).isEqualTo("h20");
        assertThat(report.host().system()).isEqualTo("Linux 6.8.0");
        assertThat(report.host().deepep()).isEqualTo("1 (abc)");
        assertThat(report.findings()).allMatch(Finding::isOk).allMatch(f -> f.cure().isEmpty());
        assertThat(report.modes()).allMatch(Way::possible);
        assertThat(way(report, Way.severalNodes(NvshmemTransport.IBGDA)).detail())
                .isEqualTo("the GPUs drive the NICs");
        assertThat(finding(report, "GPU", "kernel module").detail()).isEqualTo("580.65.06, open");
        assertThat(finding(report, "network", "RDMA ports").detail())
                .isEqualTo("4, 1600 Gb/s together");
        assertThat(finding(report, "GPUDirect", "RDMA").detail())
                .isEqualTo("dma-buf, nvidia-peermem");
        assertThat(finding(report, "NVSHMEM", "version").detail()).isEqualTo("3.4.5");
    }

    /** What is taken away, the finding it makes, and whether one node, IBRC and IBGDA still run. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "sys/module/gdrdrv | GPUDirect | GDRCopy | WARN | gdrdrv not loaded | true | true | true",
                "usr/lib/x86_64-linux-gnu/libgdrapi.so.2 | GPUDirect | GDRCopy | WARN | libgdrapi.so.2 | true | true | true",
                "sys/class/infiniband | network | RDMA ports | MISSING | none to use | true | false | false",
                "usr/lib/x86_64-linux-gnu/libmlx5.so.1 | network | RDMA libraries | MISSING | libmlx5.so.1 | true | false | false",
                "dev/infiniband | network | /dev/infiniband | MISSING | no uverbs | true | false | false",
                "proc/self/limits | network | locked memory | INFO | not known: /proc/self/limits | true | true | true",
                "proc/driver/nvidia/params | GPUDirect | driver options | INFO | not known | true | true | true",
                "usr/local/lib/python3.12/dist-packages | NVSHMEM | library | MISSING | not found | true | false | false",
                "usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/lib/nvshmem_transport_ibgda.so.3"
                        + " | NVSHMEM | IBGDA | MISSING | not in the library folder | true | true | false",
                "usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/lib/nvshmem_bootstrap_uid.so.3"
                        + " | NVSHMEM | bootstrap | MISSING | not in the library folder | true | false | false",
                "proc/driver/nvidia/version | GPU | kernel module | INFO | container | true | true | true",
            })
    void whatIsTakenAwayIsFoundMissing(
            String path,
            String topic,
            String item,
            Finding.Status status,
            String detail,
            boolean oneNode,
            boolean ibrc,
            boolean ibgda) {
        machine.without(path);
        DoctorReport report = examine();
        Finding finding = finding(report, topic, item);
        assertThat(finding.status()).isEqualTo(status);
        assertThat(finding.detail()).contains(detail);
        assertThat(finding.cure().isBlank()).isEqualTo(status == Finding.Status.INFO);
        assertThat(possible(report)).containsExactly(true, oneNode, ibrc, ibgda);
    }

    /** As EFA's are: no folder that every machine has, but one that /etc/ld.so.conf.d names. */
    @Test
    void librariesAreWhereTheLinkersCacheHasThem() {
        machine.without("usr/lib/x86_64-linux-gnu/libfabric.so.1");
        machine.file("etc/ld.so.cache", "libfabric.so.1.2\0/opt/amazon/efa/lib/libfabric.so.1.2\0");
        assertThat(finding(examine(), "NVSHMEM", "LIBFABRIC").isOk()).isFalse();
        machine.file("etc/ld.so.cache", "\0/opt/amazon/efa/lib/libfabric.so.1\0");
        assertThat(finding(examine(), "NVSHMEM", "LIBFABRIC").isOk()).isTrue();
    }

    @Test
    void driverOptionsDecideWhoRingsTheDoorbell() {
        machine.file("proc/driver/nvidia/params", "EnableStreamMemOPs: 0\nRegistryDwords: \"\"");
        DoctorReport report = examine();
        assertThat(finding(report, "GPUDirect", "EnableStreamMemOPs").cure())
                .contains("NVreg_EnableStreamMemOPs=1")
                .contains("PeerMappingOverride=1");
        assertThat(finding(report, "GPUDirect", "PeerMappingOverride").status())
                .isEqualTo(Finding.Status.WARN);
        assertThat(report.findings().stream().map(Finding::cure).distinct())
                .filteredOn(cure -> cure.contains("modprobe.d"))
                .as("one cure for both")
                .hasSize(1);
        assertThat(way(report, Way.severalNodes(NvshmemTransport.IBGDA)))
                .isEqualTo(
                        new Way(
                                "several nodes over IBGDA",
                                true,
                                "the CPU rings the doorbells: set the driver options for full speed"));
    }

    @Test
    void eitherWayToGpuMemoryWillDo() {
        machine.without("sys/module/nvidia_peermem");
        assertThat(finding(examine(), "GPUDirect", "RDMA").detail()).isEqualTo("dma-buf");
        DoctorReport neither = examine(FixtureMachine.gpus(false));
        assertThat(finding(neither, "GPUDirect", "RDMA").cure())
                .startsWith("sudo modprobe nvidia-peermem");
        assertThat(possible(neither)).containsExactly(true, true, false, false);
    }

    @Test
    void olderNvshmemIsRefused() {
        String packages = "usr/local/lib/python3.12/dist-packages/";
        machine.without(packages + "nvidia_nvshmem_cu13-3.4.5.dist-info");
        assertThat(finding(examine(), "NVSHMEM", "version").detail())
                .isEqualTo("known only when it is loaded");
        machine.file(packages + "nvidia_nvshmem_cu13-3.3.20.dist-info/METADATA", "");
        DoctorReport report = examine();
        assertThat(finding(report, "NVSHMEM", "version").detail())
                .isEqualTo("3.3.20 does not support device code of 3.4.5");
        assertThat(possible(report)).containsExactly(true, true, false, false);
    }

    /** What is taken away stops the transport that needs it, and no other. */
    @ParameterizedTest
    @CsvSource({
        "usr/lib/x86_64-linux-gnu/libucp.so.0, UCX, libucp.so.0, libucx0",
        "usr/lib/x86_64-linux-gnu/libfabric.so.1, LIBFABRIC, libfabric.so.1, libfabric1",
        NVSHMEM_FOLDER
                + "nvshmem_transport_ucx.so.3, UCX, not in the library folder, nvidia-nvshmem-cu13",
        NVSHMEM_FOLDER
                + "nvshmem_transport_ibdevx.so.3, IBDEVX, not in the library folder, nvidia-nvshmem-cu13"
    })
    void everyTransportHasItsOwnNeeds(
            String path, NvshmemTransport stopped, String detail, String cure) {
        machine.without(path);
        DoctorReport report = examine();
        assertThat(finding(report, "NVSHMEM", stopped.name()).detail()).contains(detail);
        assertThat(finding(report, "NVSHMEM", stopped.name()).cure()).contains(cure);
        for (NvshmemTransport each : NvshmemTransport.values()) {
            if (each != NvshmemTransport.NONE) {
                assertThat(way(report, Way.severalNodes(each)).possible())
                        .as("%s", each)
                        .isEqualTo(each != stopped);
            }
        }
        assertThat(way(report, Way.VIRTUAL_NODES).possible()).isTrue();
        assertThat(way(report, Way.HOST).detail())
                .endsWith(
                        "up to 2048 ranks, 72 per node; low-latency mode 2048 ranks, 72 per node");
    }

    /**
     * NICs do not matter to ranks of one host, nor to libraries that have networks of their own.
     */
    @Test
    void withoutNicsSomeThingsRun() {
        machine.without("sys/class/infiniband");
        DoctorReport report = examine();
        assertThat(report.modes().stream().filter(Way::possible).map(Way::name))
                .containsExactly(
                        Way.HOST,
                        "GPUs of one node",
                        "virtual nodes over NVSHMEM",
                        "several nodes over UCX",
                        "several nodes over LIBFABRIC");
    }

    @Test
    void aBuildWithoutKernelsOverNvshmemHasOneNodeOnly() {
        DoctorReport report =
                DoctorReport.of(
                        machine.machine(), "1 (abc)", false, FixtureMachine.gpus(true), CARDS, "");
        assertThat(finding(report, "NVSHMEM", "kernels").cure()).contains("NVSHMEM_HOME=");
        assertThat(report.modes().stream().filter(Way::possible).map(Way::name))
                .containsExactly(Way.HOST, "GPUs of one node", Way.OWN_IBGDA);
        assertThat(way(report, Way.VIRTUAL_NODES).detail()).isEqualTo("missing: NVSHMEM kernels");
    }

    @Test
    void noDriverIsNoError() {
        machine.without("proc/driver");
        DoctorReport report = examine(GpuFacts.unavailable("no libcuda", "install the driver"));
        assertThat(finding(report, "GPU", "CUDA driver").cure()).isEqualTo("install the driver");
        assertThat(finding(report, "GPU", "kernel module").status())
                .isEqualTo(Finding.Status.MISSING);
        assertThat(possible(report)).containsExactly(true, false, false, false);
        assertThat(report.gpus()).allMatch(gpu -> gpu.name().equals("not visible to CUDA"));
    }

    @Test
    void domainsAcrossHostsNeedAChannel() {
        String domain = "0123456789abcdef0123456789abcdef.7";
        assertThat(finding(examine(), "GPU", "NVLink domain").detail())
                .isEqualTo(
                        "this host is one: cuda:0 cuda:1 cuda:2 cuda:3 cuda:4 cuda:5 cuda:6 cuda:7");
        DoctorReport without = examine(FixtureMachine.gpus(true, domain));
        assertThat(finding(without, "GPU", "NVLink domain").detail())
                .isEqualTo("cuda:0 cuda:1 cuda:2 cuda:3 cuda:4 cuda:5 cuda:6 cuda:7 in " + domain);
        assertThat(finding(without, "GPU", "IMEX channel").cure()).contains("nvidia-imex");
        machine.file("dev/nvidia-caps-imex-channels/channel0", "");
        DoctorReport with = examine(FixtureMachine.gpus(true, domain));
        assertThat(finding(with, "GPU", "IMEX channel"))
                .isEqualTo(new Check("GPU", "IMEX channel").ok("channel0"));
    }

    @Test
    void weakGpusAndBrokenLinksAreNamed() {
        GpuFacts good = FixtureMachine.gpus(true);
        GpuFacts.Gpu old =
                new GpuFacts.Gpu(
                        0, "NVIDIA A100", "0000:13:00.0", 8, 0, 108, 80L << 30, true, true, "");
        GpuFacts facts =
                new GpuFacts(
                        "",
                        "",
                        "13.0",
                        List.of(old, good.gpus().get(1)),
                        List.of(List.of(true, false), List.of(true, true)),
                        List.of(List.of(0, 0), List.of(0, 0)),
                        List.of(),
                        "cuMemAlloc_v2 failed");
        DoctorReport report = examine(facts);
        assertThat(finding(report, "GPU", "architecture").detail())
                .isEqualTo("older than Hopper: cuda:0 NVIDIA A100");
        assertThat(finding(report, "GPU", "peer access").status())
                .isEqualTo(Finding.Status.MISSING);
        assertThat(finding(report, "GPU", "NVLink").cure()).contains("nvidia-fabricmanager");
        assertThat(report.cuda().peerProblem()).isEqualTo("cuMemAlloc_v2 failed");
    }

    /** For transports of NVSHMEM that list them all, and for no other way. */
    @Test
    void tooManyRdmaDevicesAreDangerous() {
        for (int i = 0; i < 45; i++) {
            machine.file("sys/class/infiniband/rxe" + i + "/fw_ver", "");
        }
        DoctorReport report = examine();
        assertThat(finding(report, "NVSHMEM", "RDMA devices").detail())
                .isEqualTo("49 are more than the 48 that it has room for");
        assertThat(possible(report)).containsExactly(true, true, false, false);
        assertThat(report.modes())
                .filteredOn(way -> !way.possible())
                .allMatch(way -> way.detail().equals("missing: NVSHMEM RDMA devices"))
                .extracting(Way::name)
                .containsExactly(
                        Way.severalNodes(NvshmemTransport.IBRC),
                        Way.severalNodes(NvshmemTransport.IBDEVX),
                        Way.severalNodes(NvshmemTransport.IBGDA));
    }

    @Test
    void userMappingIsShownOrRefused() {
        assertThat(examine("gpu0=mlx5_bond_3").gpus().getFirst().hcaList())
                .isEqualTo("mlx5_bond_3:1");
        assertThatThrownBy(() -> examine("gpu0=mlx5_9"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "NIC mapping \"gpu0=mlx5_9\": mlx5_9 is not a NIC of this host");
    }

    @Test
    void withoutAGpuADriverIsNoCure(@TempDir Path empty) {
        FixtureMachine other = new FixtureMachine(empty);
        other.without("sys").without("proc/driver");
        other.file("sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086");
        GpuFacts none = GpuFacts.unavailable("libcuda.so.1 cannot be loaded", "install the driver");
        DoctorReport report = other.examine(none, CARDS);
        assertThat(report.findings())
                .singleElement()
                .satisfies(
                        finding -> {
                            assertThat(finding.detail()).isEqualTo("no NVIDIA GPU on the PCI bus");
                            assertThat(finding.cure()).doesNotContain("driver");
                        });
        assertThat(way(report, Way.ONE_NODE).detail()).isEqualTo("missing: GPU device");
        assertThat(report.modes().stream().filter(Way::possible)).hasSize(1);
    }

    @Test
    void requirementsAreMetOrSayWhatIsMissing() {
        DoctorReport healthy = examine();
        for (Requirement each : Requirement.values()) {
            assertThat(each.unmet(healthy)).as("%s", each).isEmpty();
        }
        machine.without(NVSHMEM_FOLDER + "nvshmem_transport_ibgda.so.3");
        DoctorReport withoutIbgda = examine();
        assertThat(Requirement.CUDA.unmet(withoutIbgda)).isEmpty();
        assertThat(Requirement.RDMA.unmet(withoutIbgda)).isEmpty();
        assertThat(Requirement.IBGDA.unmet(withoutIbgda)).as("our own").isEmpty();
        machine.without("dev/infiniband");
        DoctorReport withoutDevices = examine();
        assertThat(Requirement.RDMA.unmet(withoutDevices)).isPresent();
        assertThat(Requirement.IBGDA.unmet(withoutDevices))
                .hasValue(
                        "several nodes over IBGDA: missing: NVSHMEM IBGDA, network /dev/infiniband");
        GpuFacts none = GpuFacts.unavailable("libcuda.so.1 cannot be loaded", "install it");
        assertThat(Requirement.CUDA.unmet(examine(none)).orElseThrow())
                .startsWith("GPUs of one node: missing: ");
    }

    /** RoCE works with small packets too, and is slower. */
    @Test
    void smallPacketsAreNamed() {
        machine.file("sys/class/infiniband/mlx5_bond_0/device/net/eth0/mtu", "1500");
        Finding mtu = finding(examine(), "network", "MTU");
        assertThat(mtu.status()).isEqualTo(Finding.Status.WARN);
        assertThat(mtu.detail()).isEqualTo("eth0 1500");
        assertThat(mtu.cure()).startsWith("sudo ip link set dev eth0 mtu 9000");
        machine.file("sys/class/infiniband/mlx5_bond_0/device/net/eth0/mtu", "9000");
        assertThat(finding(examine(), "network", "MTU").detail()).isEqualTo("9000");
    }

    @Test
    void aPortOfRoceNeedsAnAddress() {
        String gids = "sys/class/infiniband/mlx5_bond_0/ports/1/gids/";
        machine.file(gids + "0", "0000:0000:0000:0000:0000:0000:0000:0000");
        Finding none = finding(examine(), "network", "GIDs");
        assertThat(none.status()).isEqualTo(Finding.Status.MISSING);
        assertThat(none.detail()).isEqualTo("none at mlx5_bond_0:1");
        machine.file(gids + "3", "0000:0000:0000:0000:0000:ffff:0a00:0001");
        assertThat(finding(examine(), "network", "GIDs").isOk()).isTrue();
    }

    /** 24 queue pairs to each of 255 other nodes. */
    @ParameterizedTest
    @CsvSource({
        "6120, 32768, OK",
        "6119, 32768, WARN",
        "262144, 16384, WARN",
    })
    void fewQueuePairsAreNamed(int queuePairs, int entries, Finding.Status status) {
        List<NicFacts> cards = new ArrayList<>(CARDS);
        cards.set(
                2,
                FixtureMachine.card(
                        "mlx5_bond_2", queuePairs, entries, List.of(), FixtureMachine.TRIED));
        cards.add(NicFacts.unknown("mlx5_9", "not of this host"));
        Finding pairs = finding(examine(cards), "network", "queue pairs");
        assertThat(pairs.status()).isEqualTo(status);
        assertThat(pairs.detail())
                .contains("mlx5_bond_2 " + queuePairs + " of " + entries + " entries");
        assertThat(pairs.detail().contains("mlx5_bond_0")).isEqualTo(pairs.isOk());
    }

    @Test
    void aDeviceThatCannotBeOpenedIsMissing() {
        List<NicFacts> cards = new ArrayList<>(CARDS);
        cards.set(1, NicFacts.unknown("mlx5_bond_1", "Permission denied"));
        DoctorReport report = examine(cards);
        assertThat(finding(report, "network", "RDMA devices").detail())
                .isEqualTo("libibverbs cannot open mlx5_bond_1: Permission denied");
        assertThat(possible(report)).containsExactly(true, true, false, false);
    }

    /** A container sees all in sysfs, but has the device files of some. */
    @Test
    void aDeviceThatAContainerLacksIsMissing() {
        List<NicFacts> cards = CARDS.subList(0, 3);
        DoctorReport report = examine(cards);
        assertThat(finding(report, "network", "RDMA devices").detail())
                .isEqualTo("libibverbs cannot open mlx5_bond_3: it is not listed");
        assertThat(possible(report)).containsExactly(true, true, false, false);
        assertThat(way(report, Way.OWN_IBGDA).possible()).isFalse();
        GpuFacts all = FixtureMachine.gpus(true);
        GpuFacts one =
                new GpuFacts(
                        "",
                        "",
                        all.cudaVersion(),
                        all.gpus().subList(0, 1),
                        List.of(List.of(true)),
                        List.of(),
                        List.of(),
                        "");
        assertThat(machine.examine(one, cards).modes())
                .as("whose GPU another NIC serves")
                .allMatch(Way::possible);
    }
}
