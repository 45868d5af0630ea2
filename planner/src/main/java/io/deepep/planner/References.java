package io.deepep.planner;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.testkit.routing.Gate;
import java.util.List;
import java.util.stream.Stream;

/**
 * The measured times that the planner is compared with. docs/guides/planning.md shows all of them.
 */
public final class References {
    private static final int HIDDEN = 7168;
    private static final int NUM_TOPK = 8;
    private static final int NUM_EXPERTS = 256;
    private static final int NODE = 8;

    /** DeepEP's rows: FP8 with F32 scales, BF16; low latency puts 16 bytes before a token. */
    private static final long FP8_ROW = HIDDEN + 4L * HIDDEN / 128;

    private static final long BF16_ROW = 2L * HIDDEN;
    private static final long V1_SOURCE_INFO = 16;

    /** DeepEP V2 counts indices (I64) and weights in. */
    private static final long V2_TOPK = (8 + 4) * NUM_TOPK;

    private static final long V2_WEIGHTS = 4 * NUM_TOPK;

    private References() {}

    /** All references. */
    public static List<Reference> all() {
        return Stream.of(
                        deepEpV1Normal(),
                        deepEpV1LowLatency(),
                        deepEpV2(),
                        kernels(),
                        buffer(),
                        lowLatencyKernels(),
                        lowLatencyBuffer())
                .flatMap(List::stream)
                .toList();
    }

    /** docs/legacy.md of DeepEP: "Normal kernels with NVLink and RDMA forwarding". */
    static List<Reference> deepEpV1Normal() {
        return List.of(
                v1Normal(1, dispatchGbs(153).asFitted(), combineGbs(158).asFitted()),
                v1Normal(2, dispatchGbs(43), combineGbs(43)),
                v1Normal(4, dispatchGbs(58).asFitted(), combineGbs(57)),
                v1Normal(8, dispatchGbs(51), combineGbs(50)));
    }

    private static Reference.Time dispatchGbs(double gigabytes) {
        return gbs(Op.DISPATCH, "FP8", FP8_ROW, gigabytes);
    }

    private static Reference.Time combineGbs(double gigabytes) {
        return gbs(Op.COMBINE, "BF16", BF16_ROW, gigabytes);
    }

    /** Groups as DeepEP's test makes them: the nodes, of which a token uses up to 4. */
    private static Reference v1Normal(int nodes, Reference.Time... times) {
        return new Reference(
                "DeepEP V1, H800",
                KnownProfile.H800_DEEPEP_V1,
                Mode.NORMAL,
                RowRule.ONCE_PER_SELECTION,
                new EpTopology(0, nodes * NODE, NODE),
                new Shape(4096, HIDDEN, NUM_TOPK, NUM_EXPERTS),
                nodes == 1
                        ? new Gate.Uniform()
                        : new Gate.GroupLimited(nodes, Math.min(nodes, 4), false),
                false,
                List.of(times));
    }

    /** docs/legacy.md of DeepEP: "Low-latency kernels with pure RDMA". */
    static List<Reference> deepEpV1LowLatency() {
        return List.of(
                v1LowLatency(8, 77, 114, true),
                v1LowLatency(16, 118, 195, false),
                v1LowLatency(32, 155, 273, false),
                v1LowLatency(64, 173, 314, false),
                v1LowLatency(128, 192, 369, false),
                v1LowLatency(256, 194, 360, true));
    }

    private static Reference v1LowLatency(
            int numRanks, double dispatch, double combine, boolean fitted) {
        List<Reference.Time> times =
                List.of(
                        micros(
                                Op.DISPATCH,
                                "FP8",
                                WireFormat.ofRows(FP8_ROW + V1_SOURCE_INFO),
                                dispatch),
                        micros(Op.COMBINE, "BF16", WireFormat.ofRows(BF16_ROW), combine));
        return new Reference(
                "DeepEP V1, H800",
                KnownProfile.H800_DEEPEP_V1,
                Mode.LOW_LATENCY,
                RowRule.ONCE_PER_SELECTION,
                new EpTopology(0, numRanks, NODE),
                new Shape(128, HIDDEN, NUM_TOPK, NUM_EXPERTS),
                new Gate.Uniform(),
                false,
                fitted ? times.stream().map(Reference.Time::asFitted).toList() : times);
    }

    /** README of DeepEP: the rows of SM90 with CX7. The GPU's name is not given. */
    static List<Reference> deepEpV2() {
        return List.of(v2(2, 90, 81), v2(4, 61, 61));
    }

    private static Reference v2(int nodes, double dispatch, double combine) {
        return new Reference(
                "DeepEP V2, SM90",
                KnownProfile.H200,
                Mode.NORMAL,
                RowRule.ONCE_PER_SELECTION,
                new EpTopology(0, nodes * NODE, NODE),
                new Shape(8192, HIDDEN, NUM_TOPK, NUM_EXPERTS),
                new Gate.Uniform(),
                false,
                List.of(
                        gbs(Op.DISPATCH, "FP8", FP8_ROW + V2_TOPK, dispatch),
                        gbs(Op.COMBINE, "BF16", BF16_ROW + V2_WEIGHTS, combine)));
    }

    /**
     * docs/measurements/archive/2026-11-21-normal-4xh200.md, 24 SMs, new routing. Combine of 8192
     * tokens and of the skewed routing gave its slots back in an earlier way, which made no
     * difference above 1 % where both were measured.
     */
    static List<Reference> kernels() {
        Ours ours = new Ours("kernels, 4 x H200", Mode.NORMAL, 4, new Gate.Uniform());
        return List.of(
                ours.fitted(1, fp8(26.0), combine(17.5)),
                ours.measured(128, fp8(31.1), combine(34.6)),
                ours.measured(4096, fp8(251.2), bf16(466.1), combine(499.7)),
                ours.measured(8192, fp8(480.9), bf16(910.1), combine(978.6)),
                ours.with(new Gate.Zipf(1)).measured(4096, fp8(265.2), combine(522.0)));
    }

    /**
     * Records of 2026-11-21-normal-4xh200-buffer, 128 tokens of 2026-11-21-normal-4xh200-staging:
     * 24 SMs, new routing, combine in place.
     */
    static List<Reference> buffer() {
        Ours ours = new Ours("Buffer, 4 x H200", Mode.NORMAL, 4, new Gate.Uniform());
        Ours two = new Ours("Buffer, 4 x H200", Mode.NORMAL, 2, new Gate.Uniform());
        Ours skewed = ours.with(new Gate.Zipf(1));
        return List.of(
                ours.measured(128, fp8(32.4), bf16(38.2), combine(36.2)),
                two.measured(4096, fp8(102.1), bf16(179.8), combine(195.9)),
                ours.measured(4096, fp8(251.3), bf16(467.7), combine(501.5)),
                ours.measured(8192, fp8(482.2), bf16(912.3), combine(983.3)),
                skewed.measured(4096, fp8(265.9), bf16(493.5), combine(515.8)));
    }

    /** Dispatch of docs/measurements/archive/2026-11-21-low-latency-4xh200.md, 132 SMs. */
    static List<Reference> lowLatencyKernels() {
        Ours ours = new Ours("kernels, 4 x H200", Mode.LOW_LATENCY, 4, new Gate.Uniform());
        return List.of(
                ours.fitted(1, fp8(11.3)),
                ours.measured(8, fp8(12.4), bf16(12.8)),
                ours.measured(32, fp8(13.7), bf16(15.3)),
                ours.measured(128, fp8(23.0), bf16(29.8)));
    }

    /**
     * Combine in place of the record 2026-11-21-4xh200/low-latency.json, 132 SMs. Its dispatch is
     * an earlier one.
     */
    static List<Reference> lowLatencyBuffer() {
        Ours ours = new Ours("Buffer, 4 x H200", Mode.LOW_LATENCY, 4, new Gate.Uniform());
        return List.of(
                ours.fitted(1, combine(10.7)),
                ours.measured(8, combine(12.7)),
                ours.measured(32, combine(20.9)),
                ours.measured(128, combine(48.2)));
    }

    private record Measured(Op op, DType dtype, double micros) {}

    private static Measured fp8(double micros) {
        return new Measured(Op.DISPATCH, DType.FP8_E4M3, micros);
    }

    private static Measured bf16(double micros) {
        return new Measured(Op.DISPATCH, DType.BF16, micros);
    }

    private static Measured combine(double micros) {
        return new Measured(Op.COMBINE, DType.BF16, micros);
    }

    /** What this library took on one node of H200, the slowest rank. */
    private record Ours(String source, Mode mode, int numRanks, Gate gate) {
        Ours with(Gate other) {
            return new Ours(source, mode, numRanks, other);
        }

        Reference measured(int numTokens, Measured... times) {
            return of(numTokens, false, times);
        }

        Reference fitted(int numTokens, Measured... times) {
            return of(numTokens, true, times);
        }

        private Reference of(int numTokens, boolean fitted, Measured... times) {
            EpTopology topology = new EpTopology(0, numRanks, numRanks);
            Shape shape = new Shape(numTokens, HIDDEN, NUM_TOPK, NUM_EXPERTS);
            return new Reference(
                    source,
                    KnownProfile.H200,
                    mode,
                    RowRule.ONCE_PER_RANK,
                    topology,
                    shape,
                    gate,
                    true,
                    Stream.of(times)
                            .map(
                                    each ->
                                            new Reference.Time(
                                                    each.op(),
                                                    each.dtype() == DType.BF16 ? "BF16" : "FP8",
                                                    WireFormat.of(
                                                            mode,
                                                            each.op(),
                                                            each.dtype(),
                                                            shape,
                                                            topology),
                                                    each.micros(),
                                                    false,
                                                    fitted))
                            .toList());
        }
    }

    private static Reference.Time gbs(Op op, String dtype, long rowBytes, double gigabytes) {
        return new Reference.Time(op, dtype, WireFormat.ofRows(rowBytes), gigabytes, true, false);
    }

    private static Reference.Time micros(Op op, String dtype, WireFormat wire, double micros) {
        return new Reference.Time(op, dtype, wire, micros, false, false);
    }
}
