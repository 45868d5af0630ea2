package io.deepep.doctor;

import io.deepep.Device;
import io.deepep.GroupLimits;
import io.deepep.cuda.nvshmem.NvshmemTransport;
import io.deepep.doctor.Finding.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

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

    private static final List<Check> GPUS =
            List.of(
                    DriverCheck.DEVICE,
                    DriverCheck.MODULE,
                    DriverCheck.DRIVER,
                    DriverCheck.ARCHITECTURE);

    /** What GPUs need besides to reach each other's memory. */
    private static final List<Check> PEERS = List.of(DriverCheck.PEERS);

    private static final List<Check> NVSHMEM =
            List.of(
                    NvshmemCheck.LIBRARY,
                    NvshmemCheck.VERSION,
                    NvshmemCheck.BOOTSTRAP,
                    NvshmemCheck.KERNELS);

    /** What RDMA needs, whoever drives the NICs. */
    private static final List<Check> RDMA =
            List.of(
                    NicCheck.PORTS,
                    PortCheck.GIDS,
                    NicCheck.DEVICES,
                    NicCheck.LIBRARIES,
                    NicCheck.VERBS,
                    RdmaCheck.RDMA);

    private static final List<Check> IBGDA =
            List.of(IbgdaCheck.CARDS, IbgdaCheck.PORTS, IbgdaCheck.MEMORY);

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
        Check plugin = NvshmemCheck.check(transport);
        boolean listed = transport.usesHcaList();
        List<Check> own = listed ? List.of(plugin, NvshmemCheck.DEVICES) : List.of(plugin);
        List<Check> cards = listed ? RDMA : List.of();
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
                Stream.of(RdmaCheck.STREAM_MEM_OPS, RdmaCheck.PEER_MAPPING)
                        .allMatch(option -> any(findings, option, Status.OK));
        return gpuRings
                ? "the GPUs drive the NICs"
                : "the CPU rings the doorbells: set the driver options for full speed";
    }

    /** Those of the checks that found something missing. */
    @SafeVarargs
    private static List<String> missing(List<Finding> findings, List<Check>... checks) {
        List<String> missing = new ArrayList<>();
        for (List<Check> group : checks) {
            group.stream()
                    .filter(check -> any(findings, check, Status.MISSING))
                    .map(Check::toString)
                    .forEach(missing::add);
        }
        return missing;
    }

    private static boolean any(List<Finding> findings, Check check, Status status) {
        return findings.stream().anyMatch(each -> each.is(check, status));
    }
}
