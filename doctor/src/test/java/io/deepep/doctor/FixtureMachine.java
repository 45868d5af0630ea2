package io.deepep.doctor;

import io.deepep.testkit.sysfs.SysfsTree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A machine that has everything, in a folder; tests take things away. */
final class FixtureMachine {
    static final List<String> GPU_ADDRESSES =
            IntStream.range(1, 9).mapToObj(i -> "0000:" + i + "3:00.0").toList();

    private final Path root;

    /** The H20 host: its GPUs are at {@link #GPU_ADDRESSES}. */
    FixtureMachine(Path root) {
        this.root = root;
        SysfsTree.build("h20-8gpu-4bond.txt", root.resolve("sys"));
        file("sys/module/nvidia_peermem/refcnt", "0");
        file("sys/module/gdrdrv/refcnt", "0");
        file("dev/gdrdrv", "");
        file("dev/infiniband/uverbs0", "");
        file("proc/sys/kernel/hostname", "h20");
        file("proc/sys/kernel/osrelease", "6.8.0");
        file(
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build");
        file(
                "proc/driver/nvidia/params",
                "ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"");
        file(
                "proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units\n"
                        + "Max locked memory         unlimited            unlimited            bytes");
        for (String library :
                List.of(
                        "libibverbs.so.1",
                        "libmlx5.so.1",
                        "libgdrapi.so.2",
                        "libucp.so.0",
                        "libfabric.so.1")) {
            file("usr/lib/x86_64-linux-gnu/" + library, "");
        }
        String nvshmem = "usr/local/lib/python3.12/dist-packages/nvidia/nvshmem/";
        for (String library :
                List.of(
                        "libnvshmem_host.so.3",
                        "nvshmem_bootstrap_uid.so.3",
                        "nvshmem_transport_ibrc.so.3",
                        "nvshmem_transport_ucx.so.3",
                        "nvshmem_transport_libfabric.so.3",
                        "nvshmem_transport_ibdevx.so.3",
                        "nvshmem_transport_ibgda.so.3")) {
            file(nvshmem + "lib/" + library, "");
        }
        file(
                "usr/local/lib/python3.12/dist-packages/nvidia_nvshmem_cu13-3.4.5.dist-info/METADATA",
                "Name: nvidia-nvshmem-cu13");
    }

    FixtureMachine file(String path, String content) {
        new SysfsTree(root).file(path, content);
        return this;
    }

    FixtureMachine without(String path) {
        try (Stream<Path> all = Files.walk(root.resolve(path))) {
            for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return this;
    }

    Machine machine() {
        return new Machine(root, Map.of());
    }

    /** What the doctor says of it with these GPUs and cards. */
    DoctorReport examine(GpuFacts gpus, List<NicFacts> cards) {
        return DoctorReport.of(machine(), "1 (abc)", true, gpus, cards, "");
    }

    static Finding finding(DoctorReport report, String topic, String item) {
        return report.findings().stream()
                .filter(f -> f.topic().equals(topic) && f.item().equals(item))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + topic + " " + item));
    }

    static Way way(DoctorReport report, String name) {
        return report.modes().stream()
                .filter(way -> way.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + name));
    }

    /** Eight Hopper GPUs behind NVSwitches. */
    static GpuFacts gpus(boolean dmaBuf) {
        return gpus(dmaBuf, "");
    }

    /** Eight GPUs that name this NVLink domain. */
    static GpuFacts gpus(boolean dmaBuf, String nvlinkDomain) {
        List<GpuFacts.Gpu> gpus =
                IntStream.range(0, 8)
                        .mapToObj(
                                i ->
                                        new GpuFacts.Gpu(
                                                i,
                                                "NVIDIA H20",
                                                GPU_ADDRESSES.get(i),
                                                9,
                                                0,
                                                78,
                                                96L << 30,
                                                true,
                                                dmaBuf,
                                                nvlinkDomain))
                        .toList();
        return new GpuFacts(
                "", "", "13.0", gpus, matrix(true, true), matrix(0, 18), matrix(2000.0, 370.0), "");
    }

    /** The cards of the H20 host, as good as GPUs want them. */
    static List<NicFacts> cards() {
        return IntStream.range(0, 4)
                .mapToObj(i -> card("mlx5_bond_" + i, List.of(), TRIED))
                .toList();
    }

    static final NicFacts.Trial TRIED = new NicFacts.Trial("cuda:0", "", "", "", "", "");

    /** With as many queue pairs, and as long ones, as GPUs want. */
    static NicFacts card(String hca, List<String> lacks, NicFacts.Trial trial) {
        return card(hca, 262144, 32768, lacks, trial);
    }

    static NicFacts card(
            String hca, long queuePairs, long entries, List<String> lacks, NicFacts.Trial trial) {
        return new NicFacts(
                hca,
                "",
                "28.43",
                queuePairs,
                entries,
                true,
                lacks,
                List.of(new NicFacts.Port(hca + ":1", true, 4096, List.of("fe80::1"))),
                trial);
    }

    static <T> List<List<T>> matrix(T own, T other) {
        return IntStream.range(0, 8)
                .mapToObj(
                        row ->
                                IntStream.range(0, 8)
                                        .mapToObj(column -> row == column ? own : other)
                                        .toList())
                .toList();
    }
}
