package io.deepep.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What lets NICs reach GPU memory, and GPUs drive NICs. */
final class RdmaCheck {
    private static final String TOPIC = "GPUDirect";
    private static final String PARAMS = "proc/driver/nvidia/params";
    static final String DRIVER_OPTIONS_CURE =
            "echo 'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\"'"
                    + " | sudo tee /etc/modprobe.d/nvidia-ibgda.conf && sudo update-initramfs -u && sudo reboot";

    static final String CURE =
            "sudo modprobe nvidia-peermem, or use the driver's open kernel modules (dma-buf, Linux 5.12 or later)";

    private RdmaCheck() {}

    static List<Finding> check(Machine machine, GpuFacts gpus) {
        List<Finding> findings = new ArrayList<>();
        findings.add(rdma(machine, gpus));
        findings.add(gdrCopy(machine));
        findings.addAll(driverOptions(machine));
        return findings;
    }

    /** Either way will do. */
    static Finding rdma(Machine machine, GpuFacts gpus) {
        String item = "RDMA";
        boolean peerMem =
                machine.has("sys/module/nvidia_peermem") || machine.has("sys/module/nv_peer_mem");
        boolean dmaBuf =
                !gpus.gpus().isEmpty()
                        && gpus.gpus().stream().allMatch(GpuFacts.Gpu::supportsDmaBuf);
        if (peerMem || dmaBuf) {
            String ways = (dmaBuf ? "dma-buf" : "") + (dmaBuf && peerMem ? ", " : "");
            return Finding.ok(TOPIC, item, ways + (peerMem ? "nvidia-peermem" : ""));
        }
        return Finding.missing(TOPIC, item, "neither dma-buf nor nvidia-peermem", CURE);
    }

    static Finding gdrCopy(Machine machine) {
        String item = "GDRCopy";
        boolean module = machine.has("sys/module/gdrdrv") && machine.has("dev/gdrdrv");
        boolean library = machine.hasLibrary("libgdrapi.so.2");
        if (module && library) {
            return Finding.ok(TOPIC, item, "gdrdrv, libgdrapi");
        }
        return Finding.warn(
                TOPIC,
                item,
                (module ? "" : "kernel module gdrdrv not loaded")
                        + (module || library ? "" : ", ")
                        + (library ? "" : "libgdrapi.so.2 not found"),
                "install gdrcopy (github.com/NVIDIA/gdrcopy), then sudo modprobe gdrdrv");
    }

    /** Without them the CPU rings the NIC's doorbells for the GPU. */
    static List<Finding> driverOptions(Machine machine) {
        Optional<String> params = machine.text(PARAMS);
        if (params.isEmpty()) {
            return List.of(
                    Finding.info(TOPIC, "driver options", "not known: there is no /" + PARAMS));
        }
        return List.of(
                option(params.get(), "EnableStreamMemOPs", "EnableStreamMemOPs: 1"),
                option(params.get(), "PeerMappingOverride", "PeerMappingOverride=1"));
    }

    private static Finding option(String params, String name, String wanted) {
        boolean set = params.lines().anyMatch(line -> line.contains(wanted));
        return set
                ? Finding.ok(TOPIC, name, "1")
                : Finding.warn(
                        TOPIC,
                        name,
                        "not set: with IBGDA the CPU rings the NIC for the GPU",
                        DRIVER_OPTIONS_CURE);
    }
}
