package io.deepep.planner;

import io.deepep.EpTopology;
import io.deepep.testkit.routing.Gate;
import java.util.List;

/**
 * Times that were measured or published for one shape, to compare predictions with.
 *
 * @param source where the figures come from
 * @param profile the profile of the machine and library
 * @param lowLatencyRule which rows a low-latency dispatch sends
 * @param slowest whether times are those of the slowest rank; otherwise of a typical rank
 * @param times the figures
 */
public record Reference(
        String source,
        Profile profile,
        Mode mode,
        RowRule lowLatencyRule,
        EpTopology topology,
        Shape shape,
        Gate gate,
        boolean slowest,
        List<Time> times) {
    private static final double NIC_GBPS = 400;

    /**
     * One figure.
     *
     * @param dtype type of the rows
     * @param wire the bytes that travel for a row
     * @param figure microseconds, or GB/s if {@code bandwidth}
     * @param bandwidth whether the figure is the logical bandwidth as DeepEP counts it, including
     *     rows to the rank's own node (several nodes) or to the rank itself (one node)
     * @param fitted whether a number of the profile was derived from it
     */
    public record Time(
            Op op,
            String dtype,
            WireFormat wire,
            double figure,
            boolean bandwidth,
            boolean fitted) {
        Time asFitted() {
            return new Time(op, dtype, wire, figure, bandwidth, true);
        }
    }

    /** The predicted and the measured value of {@code time}. */
    public record Outcome(
            Reference reference,
            Time time,
            double measuredMicros,
            double predictedMicros,
            OperationPlan plan) {
        /** The error of the prediction, relative to the measured value. */
        public double error() {
            return predictedMicros / measuredMicros - 1;
        }
    }

    /** Predicts all times of this reference. */
    public List<Outcome> predict() {
        TokenSource source = TokenSource.drawn(gate, shape, topology.numRanks(), 0);
        Simulation simulation = Simulation.of(mode, lowLatencyRule, source, topology);
        return times.stream().map(time -> predict(simulation, time)).toList();
    }

    private Outcome predict(Simulation simulation, Time time) {
        OperationPlan plan =
                OperationPlan.of(
                        mode,
                        time.op(),
                        simulation,
                        time.wire(),
                        new Cluster(topology, profile, NIC_GBPS, 1, 0));
        return new Outcome(
                this,
                time,
                measuredMicros(simulation, time),
                slowest ? plan.slowestMicros() : plan.typicalMicros(),
                plan);
    }

    private double measuredMicros(Simulation simulation, Time time) {
        if (!time.bandwidth()) {
            return time.figure();
        }
        double rows =
                topology.isInternode()
                        ? simulation.nodesReached() * shape.numTokens()
                        : simulation.meanReceived();
        return rows * time.wire().payloadBytes() / (time.figure() * 1e9) * 1e6;
    }
}
