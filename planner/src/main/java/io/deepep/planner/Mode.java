package io.deepep.planner;

import java.util.Locale;

/** The two protocols. */
public enum Mode {
    /** Throughput: once per node over RDMA, forwarded over NVLink. */
    NORMAL,
    /** Latency: straight to each rank. */
    LOW_LATENCY;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
