package io.deepep.planner;

import io.deepep.EpTopology;
import io.deepep.testkit.routing.Gate;
import java.util.List;

/**
 * Times that others or we have measured for one shape, to hold predictions against.
 *
 * @param source who measured
 * @param profile of the machine and library
 * @param lowLatencyRule which rows a low-latency dispatch sends
 * @param slowest whether times are of the slowest rank, else of a rank like any other
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
     * @param dtype of the rows
     * @param wire what travels for a row
     * @param figure microseconds, or GB/s where {@code bandwidth}
     * @param bandwidth whether it is the logical bandwidth as DeepEP counts it: rows to the own
     *     node (several nodes) or to the own rank (one node) included
     * @param fitted whether a number of the profile was solved from it
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

    /** What is predicted for {@code time} and what was measured. */
    public record Outcome(
            Reference reference,
            Time time,
            double measuredMicros,
            double predictedMicros,
            OperationPlan plan) {
        /** Relative to the measured time. */
        public double error() {
            return predictedMicros / measuredMicros - 1;
        }
    }

    public Cluster cluster() {
        return new Cluster(topology, profile, NIC_GBPS, 1, 0);
    }

    Simulation simulate() {
        TokenSource source = new TokenSource.Drawn(gate, shape, topology.numRanks(), 0);
        return mode == Mode.NORMAL
                ? Simulation.normal(source, topology)
                : Simulation.lowLatency(source, topology, lowLatencyRule);
    }

    /** Predicts all times. */
    public List<Outcome> predict() {
        Simulation simulation = simulate();
        return times.stream().map(time -> predict(simulation, time)).toList();
    }

    private Outcome predict(Simulation simulation, Time time) {
        OperationPlan plan = OperationPlan.of(mode, time.op(), simulation, time.wire(), cluster());
        return new Outcome(
                this,
                time,
                measuredMicros(simulation, time),
                slowest ? plan.slowestMicros() : plan.typicalMicros(),
                plan);
    }

    double measuredMicros(Simulation simulation, Time time) {
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
