package io.deepep.planner;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import java.util.List;
import java.util.stream.Stream;

/**
 * The plan of one mode on one cluster.
 *
 * @param dispatchType type of the rows of a dispatch; those of a combine are BF16
 * @param sampledTokens number of tokens of each rank that were simulated
 * @param operations dispatch and combine
 */
public record ModePlan(
        Mode mode,
        Cluster cluster,
        Shape shape,
        DType dispatchType,
        int sampledTokens,
        BufferBytes buffers,
        List<OperationPlan> operations) {
    /**
     * Simulates the routing and plans both operations.
     *
     * @param lowLatencyRule how often a token is sent in low-latency mode
     * @param source tokens of as many ranks as {@code cluster} has, and of this shape
     * @throws IllegalArgumentException if the library would refuse these shapes, or {@code source}
     *     has no tokens, or those of others
     */
    public static ModePlan of(
            Mode mode,
            Cluster cluster,
            Shape shape,
            DType dispatchType,
            RowRule lowLatencyRule,
            TokenSource source) {
        EpTopology topology = cluster.topology();
        BufferBytes.requireAllowed(mode, shape, topology.numRanks());
        if (dispatchType == DType.FP8_E4M3 && shape.hidden() % Fp8E4m3.CHANNELS_PER_SCALE != 0) {
            throw new IllegalArgumentException(
                    "hidden=%s is not a multiple of %s, as a dispatch in FP8_E4M3 needs; plan one in BF16"
                            .formatted(shape.hidden(), Fp8E4m3.CHANNELS_PER_SCALE));
        }
        requireSource(source, shape, topology.numRanks());
        Simulation simulation = Simulation.of(mode, lowLatencyRule, source, topology);
        BufferBytes buffers =
                mode == Mode.NORMAL
                        ? BufferBytes.normal(shape, topology, simulation.mostReceived())
                        : BufferBytes.lowLatency(shape, topology);
        return new ModePlan(
                mode,
                cluster,
                shape,
                dispatchType,
                simulation.sampledTokens(),
                buffers,
                Stream.of(Op.values())
                        .map(
                                op ->
                                        OperationPlan.of(
                                                mode,
                                                op,
                                                simulation,
                                                WireFormat.of(
                                                        mode, op, dispatchType, shape, topology),
                                                cluster))
                        .toList());
    }

    private static void requireSource(TokenSource source, Shape shape, int numRanks) {
        if (source.numRanks() != numRanks
                || source.numExperts() != shape.numExperts()
                || source.maxTokens() < 1
                || source.maxTokens() > shape.numTokens()) {
            throw new IllegalArgumentException(
                    "the source has up to %s tokens of %s ranks and %s experts, but the plan is for %s, numRanks=%s; give both the same"
                            .formatted(
                                    source.maxTokens(),
                                    source.numRanks(),
                                    source.numExperts(),
                                    shape,
                                    numRanks));
        }
    }

    /** The type of an operation's rows. */
    public DType dtype(Op op) {
        return op == Op.DISPATCH ? dispatchType : DType.BF16;
    }
}
