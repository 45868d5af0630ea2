package io.deepep.doctor;

import io.deepep.Device;
import io.deepep.GroupLimits;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import java.util.ArrayList;
import java.util.List;

/**
 * A way to run, and whether this machine allows it.
 *
 * @param name the way
 * @param possible whether it can run
 * @param detail what is missing, or a remark
 */
public record Way(String name, boolean possible, String detail) {
    static final String HOST = "host backend";
    static final String ONE_NODE = "GPUs of one node";
    static final String VIRTUAL_NODES = "virtual nodes over NVSHMEM";
    static final String OWN_IBGDA = "several nodes over IBGDA without NVSHMEM";

    /** What RDMA needs, whoever drives the NICs. */
    private static final String[] RDMA = {
        "network/RDMA ports",
        "network/GIDs",
        "network/RDMA devices",
        "network/RDMA libraries",
        "network//dev/infiniband",
        "GPUDirect/RDMA"
    };

    private static final List<String> DRIVER_OPTIONS =
            List.of("EnableStreamMemOPs", "PeerMappingOverride");

    /** All ways, given what was found. */
    static List<Way> all(List<Finding> findings) {
        List<String> oneNode =
                missing(
                        findings,
                        "GPU/device",
                        "GPU/kernel module",
                        "GPU/CUDA driver",
                        "GPU/architecture");
        List<String> nvshmem =
                and(
                        oneNode,
                        missing(
                                findings,
                                "NVSHMEM/library",
                                "NVSHMEM/version",
                                "NVSHMEM/bootstrap",
                                "NVSHMEM/kernels"));
        List<Way> ways = new ArrayList<>();
        ways.add(
                new Way(
                        HOST,
                        true,
                        "on the CPU, in one process or in several of this host; "
                                + sizes(Device.Kind.HOST)));
        ways.add(mode(ONE_NODE, oneNode, oneNodeDetail(findings)));
        ways.add(
                mode(
                        VIRTUAL_NODES,
                        and(nvshmem, missing(findings, "GPU/peer access")),
                        "a process per rank, --transport none"));
        for (NvshmemTransport transport : NvshmemTransport.values()) {
            if (transport != NvshmemTransport.NONE) {
                ways.add(severalNodes(transport, nvshmem, findings));
            }
        }
        ways.add(
                mode(
                        OWN_IBGDA,
                        and(
                                and(oneNode, missing(findings, RDMA)),
                                missing(
                                        findings,
                                        "IBGDA/cards",
                                        "IBGDA/ports",
                                        "IBGDA/GPU memory")),
                        "--network ibgda; needs only mlx5 cards, the driver and rdma-core"));
        return List.copyOf(ways);
    }

    static String severalNodes(NvshmemTransport transport) {
        return "several nodes over " + transport;
    }

    private static Way severalNodes(
            NvshmemTransport transport, List<String> nvshmem, List<Finding> findings) {
        List<String> missing = and(nvshmem, missing(findings, "NVSHMEM/" + transport.name()));
        if (transport.usesHcaList()) {
            missing = and(missing, missing(findings, RDMA));
        }
        String detail =
                switch (transport) {
                    case IBGDA -> ibgdaDetail(findings);
                    case UCX -> "with GDRCopy, over InfiniBand or RoCE";
                    case LIBFABRIC -> "over verbs, cxi or efa; see fi_info, and with efa GDRCopy";
                    default -> "the CPU drives the NICs";
                };
        return mode(severalNodes(transport), missing, detail);
    }

    private static Way mode(String name, List<String> missing, String detail) {
        return new Way(
                name,
                missing.isEmpty(),
                missing.isEmpty() ? detail : "missing: " + String.join(", ", missing));
    }

    private static String oneNodeDetail(List<Finding> findings) {
        String reach =
                missing(findings, "GPU/peer access").isEmpty()
                        ? "virtual nodes too"
                        : "only ranks whose GPUs reach each other";
        return reach + "; " + sizes(Device.Kind.CUDA);
    }

    private static String sizes(Device.Kind kind) {
        GroupLimits normal = GroupLimits.normal(kind);
        GroupLimits lowLatency = GroupLimits.lowLatency(kind);
        return "up to %s; low-latency mode %s".formatted(normal.allowed(), lowLatency.allowed());
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

    private static List<String> and(List<String> missing, List<String> more) {
        List<String> both = new ArrayList<>(missing);
        both.addAll(more);
        return both;
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
