package io.deepep.doctor;

import io.deepep.cuda.nvshmem.NvshmemTransport;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The requirements of a job that a machine can be checked for. */
public enum Requirement {
    /** Both modes on the GPUs of one node. */
    CUDA,

    /** Several nodes, over any network that drives RDMA NICs. */
    RDMA,

    /** Several nodes, with GPUs that drive the NICs. */
    IBGDA;

    /** Why the machine does not meet it; empty if it does. */
    public Optional<String> unmet(DoctorReport report) {
        List<Way> ways =
                report.modes().stream().filter(way -> names().contains(way.name())).toList();
        return ways.stream().anyMatch(Way::possible)
                ? Optional.empty()
                : Optional.of(ways.getFirst().name() + ": " + ways.getFirst().detail());
    }

    /** Of the ways to run, any of which will do. */
    private List<String> names() {
        return switch (this) {
            case CUDA -> List.of(Way.ONE_NODE);
            case IBGDA -> List.of(Way.severalNodes(NvshmemTransport.IBGDA), Way.OWN_IBGDA);
            case RDMA ->
                    Stream.concat(
                                    Arrays.stream(NvshmemTransport.values())
                                            .filter(NvshmemTransport::usesHcaList)
                                            .map(Way::severalNodes),
                                    Stream.of(Way.OWN_IBGDA))
                            .toList();
        };
    }
}
