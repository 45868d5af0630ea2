package io.deepep.planner;

import java.util.Locale;

/**
 * Known machines, each with one library. Every number was either measured directly, or derived from
 * the published figures named here and from no others; {@code ProfileTest} derives them again.
 * {@code deepep plan compare} shows the predictions for all other figures.
 */
public enum KnownProfile implements Profile {
    /**
     * This library on H200. NVLink rates are those of bare copies while all of 8 GPUs exchange: 345
     * GB/s pushed, 328 GB/s pulled. Fixed times were measured with 1 token among 4 GPUs. RDMA rates
     * are those of {@link #H800_DEEPEP_V1}. In normal mode on several nodes, a dispatch waits for
     * one trip of headers and one of rows, and so does a combine.
     */
    H200,
    /** H100: as {@link #H200}, which has the same NVLink. Not measured. */
    H100,
    /**
     * B200: as {@link #H200} with twice the rate of NVLink, because the fifth generation has twice
     * the rate of the fourth. Not measured.
     */
    B200,
    /** GB200: as {@link #B200}. Not measured. */
    GB200,
    /**
     * DeepEP V1 on H800 with 400 Gb/s NICs, from its published tables. Each kind of link is derived
     * from one world size: NVLink from EP 8 (two numbers from dispatch and combine, in each mode),
     * RDMA of low-latency mode from EP 256 (in the same way), the RDMA share of normal mode from
     * the dispatch of EP 32, with the fixed time of NVLink.
     */
    H800_DEEPEP_V1;

    /** One way through a NIC that is not on the GPU's own PCIe switch: 4 to 6 µs. */
    static final double RDMA_TRIP_MICROS = 5;

    /** Of the line rate, in normal mode: DeepEP V1, dispatch among 32 ranks. */
    static final double NORMAL_RDMA_SHARE = 0.902;

    /** Of the line rate, in low-latency mode: DeepEP V1, 256 ranks. */
    static final double LOW_LATENCY_RDMA_SHARE = 0.828;

    /** The fixed time that goes with it. */
    static final double LOW_LATENCY_RDMA_MICROS = 16.5;

    @Override
    public Costs costs(Mode mode, Op op) {
        return switch (this) {
            case H200, H100 -> ofThisLibrary(mode, op, 1);
            case B200, GB200 -> ofThisLibrary(mode, op, 2);
            case H800_DEEPEP_V1 ->
                    mode == Mode.NORMAL
                            ? new Costs(68.6, 143.1e9, 68.6, NORMAL_RDMA_SHARE)
                            : new Costs(
                                    37.4, 168.9e9, LOW_LATENCY_RDMA_MICROS, LOW_LATENCY_RDMA_SHARE);
        };
    }

    /** Measured on H200, with NVLink {@code factor} times as fast. */
    private static Costs ofThisLibrary(Mode mode, Op op, double factor) {
        if (mode == Mode.LOW_LATENCY) {
            double micros = op == Op.DISPATCH ? 11.3 : 10.7;
            return new Costs(
                    micros, factor * 345e9, LOW_LATENCY_RDMA_MICROS, LOW_LATENCY_RDMA_SHARE);
        }
        double micros = op == Op.DISPATCH ? 26.0 : 17.5;
        double rate = op == Op.DISPATCH ? 345e9 : 328e9;
        return new Costs(micros, factor * rate, micros + 2 * RDMA_TRIP_MICROS, NORMAL_RDMA_SHARE);
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
