package io.deepep.planner;

import io.deepep.EpTopology;

/**
 * The cluster that a model runs on.
 *
 * @param topology ranks and nodes; the same for each of the ranks
 * @param profile what the links cost
 * @param nicGbps line rate of a NIC in Gb/s
 * @param nicsPerGpu NICs of each GPU; less than 1 if GPUs share a NIC
 * @param nvlinkBytesPerSecond bytes per second of a GPU over NVLink in one direction; 0 for the
 *     rate of the profile
 */
public record Cluster(
        EpTopology topology,
        Profile profile,
        double nicGbps,
        double nicsPerGpu,
        double nvlinkBytesPerSecond) {
    private static final double BYTES_PER_GIGABIT = 1e9 / 8;
    private static final double LEAST = 0.001;
    private static final double MOST = 1_000_000;

    /** Validates the numbers. */
    public Cluster {
        requirePositive("nicGbps", nicGbps);
        requirePositive("nicsPerGpu", nicsPerGpu);
        if (nvlinkBytesPerSecond != 0) {
            requirePositive("nvlinkGbs", nvlinkBytesPerSecond / 1e9);
        }
    }

    private static void requirePositive(String name, double value) {
        if (!(value >= LEAST && value <= MOST)) {
            throw new IllegalArgumentException(
                    name + "=" + value + " is not in [" + LEAST + ", " + MOST + "]");
        }
    }

    /** The cost of an operation over NVLink. */
    public LinkCost nvlink(Mode mode, Op op) {
        Profile.Costs costs = profile.costs(mode, op);
        return new LinkCost(
                costs.nvlinkMicros(),
                nvlinkBytesPerSecond > 0 ? nvlinkBytesPerSecond : costs.nvlinkBytesPerSecond());
    }

    /** The cost of an operation over RDMA. */
    public LinkCost rdma(Mode mode, Op op) {
        Profile.Costs costs = profile.costs(mode, op);
        return new LinkCost(
                costs.rdmaMicros(), costs.rdmaShare() * nicGbps * nicsPerGpu * BYTES_PER_GIGABIT);
    }
}
