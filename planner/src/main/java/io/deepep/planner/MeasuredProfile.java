package io.deepep.planner;

import java.util.List;

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
        double weights = 0;
        double meanBytes = 0;
        double meanMicros = 0;
        for (Measurement each : points) {
            double weight = 1 / (each.micros() * each.micros());
            weights += weight;
            meanBytes += weight * each.bytes();
            meanMicros += weight * each.micros();
        }
        meanBytes /= weights;
        meanMicros /= weights;
        double spread = 0;
        double slope = 0;
        for (Measurement each : points) {
            double weight = 1 / (each.micros() * each.micros());
            double apart = each.bytes() - meanBytes;
            spread += weight * apart * apart;
            slope += weight * apart * (each.micros() - meanMicros);
        }
        boolean sameBytes =
                points.stream().allMatch(each -> each.bytes() == points.getFirst().bytes());
        double bare =
                points.stream().mapToDouble(Measurement::bareBytesPerSecond).max().orElseThrow();
        // Nothing is faster than the links: noise of two sizes that are close may say so.
        double microsPerByte = Math.max(sameBytes ? 0 : slope / spread, MICROS_PER_SECOND / bare);
        double fixed = Math.max(0, meanMicros - microsPerByte * meanBytes);
        return new LinkCost(fixed, MICROS_PER_SECOND / microsPerByte);
    }

    @Override
    public String toString() {
        return name;
    }
}
