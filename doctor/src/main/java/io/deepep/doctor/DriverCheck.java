package io.deepep.doctor;

import io.deepep.cuda.topology.HostTopology;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The driver, and GPUs that our kernels run on. */
final class DriverCheck {
    static final Check DEVICE = new Check("GPU", "device");
    static final Check MODULE = new Check("GPU", "kernel module");
    static final Check DRIVER = new Check("GPU", "CUDA driver");
    static final Check ARCHITECTURE = new Check("GPU", "architecture");
    static final Check PEERS = new Check("GPU", "peer access");
    private static final Check NVLINK = new Check("GPU", "NVLink");
    private static final int LEAST_MAJOR = 9;
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..."
    private static final Pattern VERSION = Pattern.compile("\\b(\\d{3}\\.\\d+(\\.\\d+)?)\\b");

    private DriverCheck() {}

    /** Whether the machine's PCI devices can be read, and no NVIDIA GPU is among them. */
    static boolean hasNoGpu(Machine machine, HostTopology host, GpuFacts gpus) {
        return !gpus.isAvailable()
                && host.gpus().isEmpty()
                && !machine.names("sys/bus/pci/devices").isEmpty()
                && !machine.has("dev/dxg"); // Windows' subsystem for Linux shows its GPU there
    }

    static Finding noGpu() {
        return DEVICE.missing(
                "no NVIDIA GPU on the PCI bus",
                "use the host backend (Device.host(), --backend host), or a machine with a Hopper GPU or later");
    }

    static List<Finding> check(Machine machine, GpuFacts gpus) {
        List<Finding> findings = new ArrayList<>();
        findings.add(kernelModule(machine, gpus));
        findings.add(
                gpus.isAvailable()
                        ? DRIVER.ok("CUDA " + gpus.cudaVersion())
                        : DRIVER.missing(gpus.problem(), gpus.cure()));
        if (gpus.isAvailable()) {
            findings.add(architecture(gpus));
            findings.addAll(DomainCheck.check(machine, gpus));
        }
        if (gpus.gpus().size() > 1) {
            findings.add(peerAccess(gpus));
            findings.add(nvLink(gpus));
        }
        return findings;
    }

    private static Finding kernelModule(Machine machine, GpuFacts gpus) {
        return machine.text("proc/driver/nvidia/version")
                .map(
                        text -> {
                            Matcher version = VERSION.matcher(text);
                            String open = text.contains("Open Kernel Module") ? ", open" : "";
                            return MODULE.ok((version.find() ? version.group(1) : "loaded") + open);
                        })
                .orElseGet(
                        () ->
                                gpus.isAvailable()
                                        ? MODULE.info("not visible in this container")
                                        : MODULE.missing(
                                                "not loaded",
                                                "sudo apt install nvidia-driver-580-server-open && sudo modprobe nvidia"));
    }

    private static Finding architecture(GpuFacts gpus) {
        List<String> old =
                gpus.gpus().stream()
                        .filter(gpu -> gpu.computeMajor() < LEAST_MAJOR)
                        .map(gpu -> "cuda:" + gpu.ordinal() + " " + gpu.name())
                        .toList();
        return old.isEmpty()
                ? ARCHITECTURE.ok(gpus.gpus().size() + " × Hopper or later")
                : ARCHITECTURE.missing(
                        "older than Hopper: " + String.join(", ", old),
                        "use --backend host, or hide them by CUDA_VISIBLE_DEVICES");
    }

    private static Finding peerAccess(GpuFacts gpus) {
        boolean all = gpus.peerAccess().stream().allMatch(row -> !row.contains(false));
        return all
                ? PEERS.ok("between all GPUs")
                : PEERS.missing(
                        "some GPUs cannot reach each other's memory",
                        "nvidia-smi topo -p2p rw; put ranks on GPUs that it shows as OK");
    }

    private static Finding nvLink(GpuFacts gpus) {
        if (gpus.nvLinks().isEmpty()) {
            return NVLINK.info("not reported by libnvidia-ml.so.1");
        }
        List<List<Integer>> links = gpus.nvLinks();
        for (int from = 0; from < links.size(); from++) {
            for (int to = 0; to < links.size(); to++) {
                if (from != to && links.get(from).get(to) == 0) {
                    return NVLINK.warn(
                            "not between all GPUs: they use PCIe",
                            "nvidia-smi nvlink -s; with NVSwitches: sudo systemctl start nvidia-fabricmanager");
                }
            }
        }
        return NVLINK.ok("between all GPUs");
    }
}
