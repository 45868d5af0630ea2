package io.deepep.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What lets NICs reach GPU memory, and GPUs drive NICs. */
final class RdmaCheck {
    static final Check RDMA = new Check("GPUDirect", "RDMA");
    static final Check STREAM_MEM_OPS = new Check("GPUDirect", "EnableStreamMemOPs");
    static final Check PEER_MAPPING = new Check("GPUDirect", "PeerMappingOverride");
    private static final Check DRIVER_OPTIONS = new Check("GPUDirect", "driver options");
    private static final Check GDR_COPY = new Check("GPUDirect", "GDRCopy");
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
    private static Finding rdma(Machine machine, GpuFacts gpus) {
        boolean peerMem =
                machine.has("sys/module/nvidia_peermem") || machine.has("sys/module/nv_peer_mem");
        boolean dmaBuf =
                !gpus.gpus().isEmpty()
                        && gpus.gpus().stream().allMatch(GpuFacts.Gpu::supportsDmaBuf);
        if (peerMem || dmaBuf) {
            String ways = (dmaBuf ? "dma-buf" : "") + (dmaBuf && peerMem ? ", " : "");
            return RDMA.ok(ways + (peerMem ? "nvidia-peermem" : ""));
        }
        return RDMA.missing("neither dma-buf nor nvidia-peermem", CURE);
    }

    private static Finding gdrCopy(Machine machine) {
        boolean module = machine.has("sys/module/gdrdrv") && machine.has("dev/gdrdrv");
        boolean library = machine.hasLibrary("libgdrapi.so.2");
        if (module && library) {
            return GDR_COPY.ok("gdrdrv, libgdrapi");
        }
        return GDR_COPY.warn(
                (module ? "" : "kernel module gdrdrv not loaded")
                        + (module || library ? "" : ", ")
                        + (library ? "" : "libgdrapi.so.2 not found"),
                "install gdrcopy (github.com/NVIDIA/gdrcopy), then sudo modprobe gdrdrv");
    }

    /** Without them the CPU rings the NIC's doorbells for the GPU. */
    private static List<Finding> driverOptions(Machine machine) {
        Optional<String> params = machine.text(PARAMS);
        if (params.isEmpty()) {
            return List.of(DRIVER_OPTIONS.info("not known: there is no /" + PARAMS));
        }
        return List.of(
                option(params.get(), STREAM_MEM_OPS, "EnableStreamMemOPs: 1"),
                option(params.get(), PEER_MAPPING, "PeerMappingOverride=1"));
    }

    private static Finding option(String params, Check option, String wanted) {
        return params.lines().anyMatch(line -> line.contains(wanted))
                ? option.ok("1")
                : option.warn(
                        "not set: with IBGDA the CPU rings the NIC for the GPU",
                        DRIVER_OPTIONS_CURE);
    }
}
