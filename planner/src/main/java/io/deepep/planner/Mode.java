package io.deepep.planner;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** The modes of the library. */
public enum Mode {
    /** For throughput: a token crosses RDMA once per node, and is forwarded there over NVLink. */
    NORMAL,
    /** For latency: a token goes directly to each rank. */
    LOW_LATENCY;

    /** The largest groups that the library supports in this mode. */
    public GroupLimits limits(Device.Kind kind) {
        return this == NORMAL ? GroupLimits.normal(kind) : GroupLimits.lowLatency(kind);
    }

    /** The kinds of devices on which the library supports such a group. */
    public List<Device.Kind> runsOn(EpTopology topology) {
        return Stream.of(Device.Kind.values())
                .filter(kind -> limits(kind).refusal(topology).isEmpty())
                .toList();
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
