package io.deepep.doctor;

import io.deepep.cuda.topology.HostTopology;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The driver, and GPUs that our kernels run on. */
final class DriverCheck {
    private static final String TOPIC = "GPU";
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
        return Finding.missing(
                TOPIC,
                "device",
                "no NVIDIA GPU on the PCI bus",
                "use the host backend (Device.host(), --backend host), or a machine with a Hopper GPU or later");
    }

    static List<Finding> check(Machine machine, GpuFacts gpus) {
        List<Finding> findings = new ArrayList<>();
        findings.add(kernelModule(machine, gpus));
        findings.add(
                gpus.isAvailable()
                        ? Finding.ok(TOPIC, "CUDA driver", "CUDA " + gpus.cudaVersion())
                        : Finding.missing(TOPIC, "CUDA driver", gpus.problem(), gpus.cure()));
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
        String item = "kernel module";
        return machine.text("proc/driver/nvidia/version")
                .map(
                        text -> {
                            Matcher version = VERSION.matcher(text);
                            String open = text.contains("Open Kernel Module") ? ", open" : "";
                            return Finding.ok(
                                    TOPIC,
                                    item,
                                    (version.find() ? version.group(1) : "loaded") + open);
                        })
                .orElseGet(
                        () ->
                                gpus.isAvailable()
                                        ? Finding.info(TOPIC, item, "not visible in this container")
                                        : Finding.missing(
                                                TOPIC,
                                                item,
                                                "not loaded",
                                                "sudo apt install nvidia-driver-580-server-open && sudo modprobe nvidia"));
    }

    private static Finding architecture(GpuFacts gpus) {
        String item = "architecture";
        List<String> old =
                gpus.gpus().stream()
                        .filter(gpu -> gpu.computeMajor() < LEAST_MAJOR)
                        .map(gpu -> "cuda:" + gpu.ordinal() + " " + gpu.name())
                        .toList();
        return old.isEmpty()
                ? Finding.ok(TOPIC, item, gpus.gpus().size() + " × Hopper or later")
                : Finding.missing(
                        TOPIC,
                        item,
                        "older than Hopper: " + String.join(", ", old),
                        "use --backend host, or hide them by CUDA_VISIBLE_DEVICES");
    }

    private static Finding peerAccess(GpuFacts gpus) {
        boolean all = gpus.peerAccess().stream().allMatch(row -> !row.contains(false));
        return all
                ? Finding.ok(TOPIC, "peer access", "between all GPUs")
                : Finding.missing(
                        TOPIC,
                        "peer access",
                        "some GPUs cannot reach each other's memory",
                        "nvidia-smi topo -p2p rw; put ranks on GPUs that it shows as OK");
    }

    private static Finding nvLink(GpuFacts gpus) {
        String item = "NVLink";
        if (gpus.nvLinks().isEmpty()) {
            return Finding.info(TOPIC, item, "libnvidia-ml.so.1 does not tell");
        }
        List<List<Integer>> links = gpus.nvLinks();
        for (int from = 0; from < links.size(); from++) {
            for (int to = 0; to < links.size(); to++) {
                if (from != to && links.get(from).get(to) == 0) {
                    return Finding.warn(
                            TOPIC,
                            item,
                            "not between all GPUs: they use PCIe",
                            "nvidia-smi nvlink -s; with NVSwitches: sudo systemctl start nvidia-fabricmanager");
                }
            }
        }
        return Finding.ok(TOPIC, item, "between all GPUs");
    }
}
