package io.deepep.planner;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** The two protocols. */
public enum Mode {
    /** Throughput: once per node over RDMA, forwarded over NVLink. */
    NORMAL,
    /** Latency: straight to each rank. */
    LOW_LATENCY;

    /** The largest groups that the library runs. */
    public GroupLimits limits(Device.Kind kind) {
        return this == NORMAL ? GroupLimits.normal(kind) : GroupLimits.lowLatency(kind);
    }

    /** Where the library runs such a group. */
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
