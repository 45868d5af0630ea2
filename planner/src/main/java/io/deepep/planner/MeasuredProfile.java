package io.deepep.planner;

import java.util.List;

/**
 * A machine on which this library was measured, one node of it. Over NVLink an operation costs a
 * fixed time and its bytes at a rate, those that come closest to what was measured, in relative
 * terms. Where all measurements are of the same bytes, the rate is the bare copy's. RDMA costs what
 * it costs {@link KnownProfile#H200}.
 *
 * @param name where the figures come from
 * @param measurements of any number of operations and sizes
 */
public record MeasuredProfile(String name, List<Measurement> measurements) implements Profile {
    private static final double MICROS_PER_SECOND = 1e6;

    /**
     * One operation of one size.
     *
     * @param bytes over the links of the busiest rank
     * @param micros of the slowest rank
     * @param bareBytesPerSecond what a bare copy reached in the same run
     */
    public record Measurement(
            Mode mode, Op op, double bytes, double micros, double bareBytesPerSecond) {}

    /** Takes a copy. */
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
                    "profile "
                            + name
                            + " has no "
                            + op
                            + " of "
                            + mode
                            + " mode: give its measurements too, or plan the other mode alone");
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
