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

    /** What GPUs need, as TOPIC/ITEM of findings. */
    private static final List<String> GPUS =
            List.of("GPU/device", "GPU/kernel module", "GPU/CUDA driver", "GPU/architecture");

    /** What GPUs need besides to reach each other's memory. */
    private static final List<String> PEERS = List.of("GPU/peer access");

    private static final List<String> NVSHMEM =
            List.of("NVSHMEM/library", "NVSHMEM/version", "NVSHMEM/bootstrap", "NVSHMEM/kernels");

    /** What RDMA needs, whoever drives the NICs. */
    private static final List<String> RDMA =
            List.of(
                    "network/RDMA ports",
                    "network/GIDs",
                    "network/RDMA devices",
                    "network/RDMA libraries",
                    "network//dev/infiniband",
                    "GPUDirect/RDMA");

    private static final List<String> IBGDA =
            List.of("IBGDA/cards", "IBGDA/ports", "IBGDA/GPU memory");

    private static final List<String> DRIVER_OPTIONS =
            List.of("EnableStreamMemOPs", "PeerMappingOverride");

    /** All ways, given what was found. */
    static List<Way> all(List<Finding> findings) {
        List<Way> ways = new ArrayList<>();
        ways.add(
                new Way(
                        HOST,
                        true,
                        "on the CPU, in one process or in several of this host; "
                                + sizes(Device.Kind.HOST)));
        ways.add(mode(ONE_NODE, missing(findings, GPUS), oneNodeDetail(findings)));
        ways.add(
                mode(
                        VIRTUAL_NODES,
                        missing(findings, GPUS, NVSHMEM, PEERS),
                        "a process per rank, --transport none"));
        for (NvshmemTransport transport : NvshmemTransport.values()) {
            if (transport != NvshmemTransport.NONE) {
                ways.add(severalNodes(transport, findings));
            }
        }
        ways.add(
                mode(
                        OWN_IBGDA,
                        missing(findings, GPUS, RDMA, IBGDA),
                        "--network ibgda; needs only mlx5 cards, the driver and rdma-core"));
        return List.copyOf(ways);
    }

    static String severalNodes(NvshmemTransport transport) {
        return "several nodes over " + transport;
    }

    private static Way severalNodes(NvshmemTransport transport, List<Finding> findings) {
        List<String> own = List.of("NVSHMEM/" + transport.name());
        List<String> cards = transport.usesHcaList() ? RDMA : List.of();
        String detail =
                switch (transport) {
                    case IBGDA -> ibgdaDetail(findings);
                    case UCX -> "with GDRCopy, over InfiniBand or RoCE";
                    case LIBFABRIC -> "over verbs, cxi or efa; see fi_info, and with efa GDRCopy";
                    default -> "the CPU drives the NICs";
                };
        return mode(severalNodes(transport), missing(findings, GPUS, NVSHMEM, own, cards), detail);
    }

    private static Way mode(String name, List<String> missing, String detail) {
        return new Way(
                name,
                missing.isEmpty(),
                missing.isEmpty() ? detail : "missing: " + String.join(", ", missing));
    }

    private static String oneNodeDetail(List<Finding> findings) {
        String reach =
                missing(findings, PEERS).isEmpty()
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

    /** Those of the named findings that are missing, by name. */
    @SafeVarargs
    private static List<String> missing(List<Finding> findings, List<String>... names) {
        List<String> missing = new ArrayList<>();
        for (List<String> group : names) {
            findings.stream()
                    .filter(finding -> finding.isMissing(group))
                    .map(finding -> finding.topic() + " " + finding.item())
                    .forEach(missing::add);
        }
        return missing;
    }
}
