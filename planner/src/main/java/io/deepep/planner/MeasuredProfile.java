package io.deepep.planner;

import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * A machine of which one node was measured with this library. Over NVLink, an operation costs a
 * fixed time and its bytes at a rate, fitted to the measurements so that the relative errors are
 * smallest. If all measurements moved the same number of bytes, the rate is that of the bare copy.
 * RDMA costs what it costs in {@link KnownProfile#H200}.
 *
 * @param name where the figures come from
 * @param measurements measurements of any number of operations and sizes
 */
public record MeasuredProfile(String name, List<Measurement> measurements) implements Profile {
    private static final double MICROS_PER_SECOND = 1e6;

    /**
     * The measurement of one operation with one size.
     *
     * @param bytes bytes over the links of the busiest rank
     * @param micros microseconds of the slowest rank
     * @param bareBytesPerSecond bytes per second of a bare copy in the same run
     */
    public record Measurement(
            Mode mode, Op op, double bytes, double micros, double bareBytesPerSecond) {}

    /** Copies the list. */
    public MeasuredProfile {
        measurements = List.copyOf(measurements);
    }

    @Override
    public Costs costs(Mode mode, Op op) {
        List<Measurement> chosen =
                measurements.stream()
                        .filter(each -> each.mode() == mode && each.op() == op)
                        .toList();
        if (chosen.isEmpty()) {
            throw new IllegalArgumentException(
                    "profile %s has no %s of %s mode; give measurements of it too, or plan only the other mode"
                            .formatted(name, op, mode));
        }
        LinkCost nvlink = line(chosen);
        Costs known = KnownProfile.H200.costs(mode, op);
        double rdmaMicros =
                mode == Mode.NORMAL
                        ? nvlink.fixedMicros() + 2 * KnownProfile.RDMA_TRIP_MICROS
                        : known.rdmaMicros();
        return new Costs(
                nvlink.fixedMicros(), nvlink.bytesPerSecond(), rdmaMicros, known.rdmaShare());
    }

    /** Least squares of relative errors: each point weighs 1 / micros^2. */
    private static LinkCost line(List<Measurement> points) {
        double weights = weighted(points, each -> 1);
        double meanBytes = weighted(points, Measurement::bytes) / weights;
        double meanMicros = weighted(points, Measurement::micros) / weights;
        double spread = weighted(points, each -> Math.pow(each.bytes() - meanBytes, 2));
        double slope =
                weighted(points, each -> (each.bytes() - meanBytes) * (each.micros() - meanMicros));
        boolean sameBytes =
                points.stream().allMatch(each -> each.bytes() == points.getFirst().bytes());
        double bare =
                points.stream().mapToDouble(Measurement::bareBytesPerSecond).max().orElseThrow();
        // Nothing is faster than the links: noise of two sizes that are close may say so.
        double microsPerByte = Math.max(sameBytes ? 0 : slope / spread, MICROS_PER_SECOND / bare);
        double fixed = Math.max(0, meanMicros - microsPerByte * meanBytes);
        return new LinkCost(fixed, MICROS_PER_SECOND / microsPerByte);
    }

    private static double weighted(List<Measurement> points, ToDoubleFunction<Measurement> value) {
        return points.stream()
                .mapToDouble(each -> value.applyAsDouble(each) / Math.pow(each.micros(), 2))
                .sum();
    }

    @Override
    public String toString() {
        return name;
    }
}
