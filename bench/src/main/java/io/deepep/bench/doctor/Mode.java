package io.deepep.bench.doctor;

import java.util.ArrayList;
import java.util.List;

/**
 * A way to run, and whether this machine allows it.
 *
 * @param name the way
 * @param possible whether it can run
 * @param detail what is missing, or what to know
 */
public record Mode(String name, boolean possible, String detail) {
    private static final List<String> DRIVER_OPTIONS =
            List.of("EnableStreamMemOPs", "PeerMappingOverride");

    /** All ways, given what was found. */
    static List<Mode> all(List<Finding> findings) {
        List<String> oneNode =
                missing(findings, "GPU/kernel module", "GPU/CUDA driver", "GPU/architecture");
        List<String> several = new ArrayList<>(oneNode);
        several.addAll(
                missing(
                        findings,
                        "network/RDMA ports",
                        "network/RDMA devices",
                        "network/RDMA libraries",
                        "network//dev/infiniband",
                        "GPUDirect/RDMA",
                        "NVSHMEM/library",
                        "NVSHMEM/version",
                        "NVSHMEM/bootstrap"));
        List<String> ibrc = new ArrayList<>(several);
        ibrc.addAll(missing(findings, "NVSHMEM/IBRC"));
        List<String> ibgda = new ArrayList<>(several);
        ibgda.addAll(missing(findings, "NVSHMEM/IBGDA"));
        return List.of(
                new Mode(
                        "host backend, any number of ranks",
                        true,
                        "on the CPU, in one process or in several of this host"),
                mode("GPUs of one node", oneNode, oneNodeDetail(findings)),
                mode("several nodes over IBRC", ibrc, "the CPU drives the NICs"),
                mode("several nodes over IBGDA", ibgda, ibgdaDetail(findings)));
    }

    private static Mode mode(String name, List<String> missing, String detail) {
        return new Mode(
                name,
                missing.isEmpty(),
                missing.isEmpty() ? detail : "missing: " + String.join(", ", missing));
    }

    private static String oneNodeDetail(List<Finding> findings) {
        return missing(findings, "GPU/peer access").isEmpty()
                ? "virtual nodes too"
                : "only ranks whose GPUs reach each other";
    }

    private static String ibgdaDetail(List<Finding> findings) {
        boolean gpuRings =
                findings.stream()
                                .filter(Finding::isOk)
                                .filter(finding -> DRIVER_OPTIONS.contains(finding.item()))
                                .count()
                        == DRIVER_OPTIONS.size();
        return gpuRings
                ? "the GPUs drive the NICs"
                : "the CPU rings the doorbells: set the driver options for full speed";
    }

    /** Those of the named findings, as TOPIC/ITEM, that are missing. */
    private static List<String> missing(List<Finding> findings, String... names) {
        return findings.stream()
                .filter(finding -> finding.status() == Finding.Status.MISSING)
                .filter(finding -> List.of(names).contains(finding.topic() + "/" + finding.item()))
                .map(finding -> finding.topic() + " " + finding.item())
                .toList();
    }
}
