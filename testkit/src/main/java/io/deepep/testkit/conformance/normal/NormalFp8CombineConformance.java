package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Normal-mode combines whose rows travel as FP8, bit for bit. */
@BackendSuite
public record NormalFp8CombineConformance(TestBackend backend) {
    /** Those whose channels come in whole groups. */
    static Stream<NormalShape> shapes(TestBackend backend) {
        return NormalShape.all(backend).filter(NormalShape::hasWholeGroups);
    }

    /** A combine of BF16 rows that travel as FP8. */
    private static CombinePlan.Builder cast(Tensor x, DispatchHandle handle) {
        return CombinePlan.builder(x, handle).format(CombineFormat.FP8);
    }

    /** Combines rows of the host from other memory than the buffer's, and compares. */
    private static Tensor combine(NormalRank rank, ScaledRows rows, DispatchHandle handle) {
        return rank.combine(NormalRank.home(rank.upload(rows), handle));
    }

    /** Masked and repeated selections, ranks without tokens; then all tokens, twice the same. */
    @Cases(from = "shapes")
    public void roundTrip(NormalShape shape, RankContext context) {
        for (NormalRank rank : List.of(shape.raggedRank(context), shape.rank(context))) {
            DispatchHandle handle = rank.newHandle();
            Tensor once = rank.combineFp8(handle);
            Tensor twice = rank.combineFp8(handle);
            assertThat(HostTensors.firstDifference(once, twice)).isEqualTo(-1);
            rank.combine(handle); // as BF16 in between
            rank.combineFp8(handle);
        }
    }

    @Cases(from = "shapes")
    public void expandedWithWeights(NormalShape shape, RankContext context) {
        NormalRank plain = shape.raggedRank(context);
        NormalRank rank = plain.expecting(plain.check().expanded(4));
        rank.combineWithWeights(rank.newHandle(), CombineFormat.FP8);
    }

    @Cases(from = "fewForFp8")
    public void biasesWeightsAndOut(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        requireAll(rank, rank.home(rank.newHandle()).format(CombineFormat.FP8));
    }

    /** Combines rows with biases, weights and an out. */
    private static void requireAll(NormalRank rank, CombinePlan.Builder plan) {
        RankContext context = rank.context();
        Tensor first = rank.world().bias(context.rank(), 0);
        Tensor second = rank.world().bias(context.rank(), 1);
        int tokens = rank.world().routing().numTokens(context.rank());
        Tensor out = context.poisoned(DType.BF16, tokens, rank.world().hidden());
        List<Tensor> given = rank.world().weights(rank.check());
        CombinePlan all =
                plan.bias(context.upload(first), context.upload(second))
                        .topkWeights(context.upload(given.get(context.rank())))
                        .out(out)
                        .build();
        CombineResult combined = context.buffer().combine(all);
        rank.verify(combined, all, first, second);
        assertThat(combined.x().address()).isEqualTo(out.address());
        rank.verifyWeights(combined, given);
    }

    /** Rows that begin anywhere. */
    @Cases(from = "fewForFp8")
    public void rowsWithGaps(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        for (int gap : new int[] {8, 3}) {
            Tensor x = context.upload(HostTensors.withRowGap(rank.hostOutputs(), gap));
            rank.combine(cast(x, handle));
        }
    }

    /** Rows that are FP8 already, in the buffer and elsewhere, give the bits of those cast here. */
    @Cases(from = "shapes")
    public void givenRows(NormalShape shape, RankContext context) {
        for (NormalRank rank : List.of(shape.raggedRank(context), shape.rank(context))) {
            DispatchHandle handle = rank.newHandle();
            Tensor cast = rank.combineFp8(handle);
            Tensor inBuffer = rank.combineFp8Rows(handle);
            Tensor elsewhere = combine(rank, rank.fp8Outputs(), handle);
            assertThat(HostTensors.firstDifference(cast, inBuffer)).isEqualTo(-1);
            assertThat(HostTensors.firstDifference(cast, elsewhere)).isEqualTo(-1);
            rank.combine(handle); // as BF16 over the FP8 rows
        }
    }

    @Cases(from = "fewForFp8")
    public void givenRowsWithBiasesWeightsAndOut(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        ScaledRows rows = rank.fp8Outputs();
        for (ScaledRows where : List.of(rank.upload(rows), rank.inBuffer(rows, handle))) {
            // The first combine copies its rows to where the second has them.
            requireAll(rank, NormalRank.home(where, handle));
        }
    }

    /** Codes of every bit pattern, and scales that no cast gives. */
    private static ScaledRows anyRows(int rank, int numRows, int hidden) {
        float[] scales = {
            0x1p-7f, -3, 0, -0f, 1e-40f, 3e38f, 1, Float.NaN, Float.NEGATIVE_INFINITY
        };
        Tokens rows = Tokens.fp8(rank, numRows, hidden, 3);
        for (int row = 0; row < numRows; row += 2) {
            for (int group = 0; group < rows.scales().size(1); group++) {
                float scale = scales[(row / 2 + group) % scales.length];
                rows.scales().setFloat(scale, row, group);
            }
        }
        return new ScaledRows(rows.x(), rows.scales());
    }

    /** A plan whose rows are written again between its runs, in the buffer and elsewhere. */
    @Cases(from = "shapes")
    public void anyCodesAndScales(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalDispatchCheck check = rank.check();
        DispatchHandle handle = rank.newHandle();
        List<ScaledRows> sent =
                context.shared(
                        "any rows",
                        _ ->
                                IntStream.range(0, context.topology().numRanks())
                                        .mapToObj(r -> anyRows(r, check.numRows(r), shape.hidden()))
                                        .toList());
        ScaledRows before = rank.fp8Outputs();
        for (ScaledRows rows : List.of(rank.inBuffer(before, handle), rank.upload(before))) {
            rank.write(before, rows);
            CombinePlan plan = NormalRank.home(rows, handle).build();
            rank.verify(context.buffer().combine(plan), plan);
            rank.write(sent.get(context.rank()), rows);
            rank.verifyFp8Rows(context.buffer().combine(plan), sent);
        }
    }

    /** Rows that begin on any byte, and scales with any strides. */
    @Cases(from = "fewForFp8")
    public void givenRowsAnywhere(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        ScaledRows rows = rank.fp8Outputs();
        for (int gap : new int[] {1, 4, 16}) {
            for (Tensor scales :
                    List.of(
                            HostTensors.withRowGap(rows.scales(), gap),
                            HostTensors.columnMajor(rows.scales()))) {
                Tensor elements = HostTensors.withRowGap(rows.elements(), gap);
                combine(rank, new ScaledRows(elements, scales), handle);
            }
        }
    }

    /** Each rank has its rows in another form; the sums are the same. */
    @Cases(from = "fewForFp8")
    public void ranksGiveDifferentForms(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchHandle handle = rank.newHandle();
        for (int round = 0; round < 3; round++) {
            switch ((context.rank() + round) % 3) {
                case 0 -> rank.combineFp8(handle);
                case 1 -> rank.combineFp8Rows(handle);
                default -> combine(rank, rank.fp8Outputs(), handle);
            }
        }
    }

    /** What was received as FP8 may go home as it came. */
    @Cases(from = "fp8Shapes")
    public void receivedRowsGoHome(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        List<ScaledRows> received =
                context.shared(
                        "received",
                        _ ->
                                rank.world().received().stream()
                                        .map(rows -> new ScaledRows(rows.x(), rows.scales()))
                                        .toList());
        for (DispatchPlan.Receive how : DispatchPlan.Receive.values()) {
            DispatchResult result = rank.dispatch(rank.plan().receive(how));
            ScaledRows rows = new ScaledRows(result.recvX(), result.recvScales());
            CombinePlan plan = NormalRank.home(rows, result.handle()).build();
            rank.verifyFp8Rows(context.buffer().combine(plan), received);
            rank.verifyFp8Rows(context.buffer().combine(plan), received);
        }
    }

    static Stream<NormalShape> fp8Shapes(TestBackend backend) {
        return NormalShape.fewForFp8(backend).filter(shape -> shape.dtype() == DType.FP8_E4M3);
    }

    /** The expanded layout is summed as BF16. */
    @Cases(from = "fewForFp8")
    public void givenRowsOfTheExpandedLayoutAreRefused(NormalShape shape, RankContext context) {
        NormalRank plain = shape.rank(context);
        NormalRank rank = plain.expecting(plain.check().expanded(4));
        DispatchHandle handle = rank.newHandle();
        requireIllegal(() -> combine(rank, rank.fp8Outputs(), handle), "give BF16 rows");
        requireIllegal(() -> context.buffer().getFp8CombineBuffer(handle), "handle is expanded");
        rank.combineFp8(handle);
    }

    /** A scale is of 128 channels; LogFMT is low-latency mode's. */
    @Cases(from = "few")
    public void whatCannotTravelIsRefused(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchHandle handle = rank.newHandle();
        requireIllegal(() -> rank.home(handle).format(CombineFormat.LOGFMT), "LOGFMT");
        if (!shape.hasWholeGroups()) {
            String hidden = "hidden=" + shape.hidden();
            requireIllegal(() -> context.buffer().getFp8CombineBuffer(handle), hidden);
            requireIllegal(() -> rank.combineFp8(handle), hidden, "128");
        }
        rank.combine(handle);
    }

    /** The region that rows are cast into cannot hold what is cast. */
    @Cases(from = "fewForFp8")
    public void combineRegionIsRefused(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchHandle handle = rank.newHandle();
        Tensor x = context.buffer().getCombineBuffer(handle);
        requireIllegal(() -> rank.combine(cast(x, handle)), "combine region", "other memory");
        ScaledRows rows = context.buffer().getFp8CombineBuffer(handle);
        ScaledRows apart =
                new ScaledRows(rows.elements(), context.upload(rank.fp8Outputs().scales()));
        if (rank.check().numRows(context.rank()) > 0) {
            requireIllegal(
                    () -> rank.combine(NormalRank.home(apart, handle)),
                    "combine region",
                    "getFp8CombineBuffer");
        }
        rank.combineFp8(handle);
    }

    /** NaN stays where it is; infinity outshines its group; zeros and tiny numbers. */
    @Cases(from = "fewForFp8")
    public void specialValues(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalDispatchCheck check = rank.check();
        DispatchHandle handle = rank.newHandle();
        List<Tensor> sent = context.shared("special", _ -> spoiled(rank.world().outputs(check)));
        CombinePlan plan = cast(context.upload(sent.get(context.rank())), handle).build();
        rank.verify(context.buffer().combine(plan), plan.format(), sent);
        rank.combineFp8(handle);
    }

    private static List<Tensor> spoiled(List<Tensor> outputs) {
        float[] values = {
            Float.NaN, Float.POSITIVE_INFINITY, 0, Float.MIN_VALUE, 1e-6f, 3e38f, -0f
        };
        List<Tensor> all = new ArrayList<>();
        for (Tensor output : outputs) {
            Tensor copy = HostTensors.copyOf(output);
            for (int row = 0; row < output.size(0); row++) {
                float value = values[row % values.length];
                boolean whole = row % 2 == 0;
                for (int h = 0; h < (whole ? output.size(1) : 1); h++) {
                    copy.setFloat(value, row, h);
                }
            }
            all.add(copy);
        }
        return all;
    }

    /** Nothing at all, everything to one expert. */
    @Cases(from = "fewForFp8")
    public void nothingAndEverything(NormalShape shape, RankContext context) {
        for (NormalRank rank :
                List.of(
                        shape.rank(context, shape.spec().withMaskedShare(1)),
                        shape.rank(context, shape.spec().withGate(new Gate.AllToOne(0))))) {
            DispatchHandle handle = rank.newHandle();
            rank.combineFp8(handle);
            rank.combineFp8Rows(handle);
            combine(rank, rank.fp8Outputs(), handle);
        }
    }

    @Cases(from = "fewForFp8")
    public void asynchronousChain(NormalShape shape, RankContext context) {
        NormalConformance.chain(shape.raggedRank(context), CombineFormat.FP8);
    }

    /** One rank combines as FP8, the others as BF16: all learn it. */
    @Cases(from = "fewForFp8")
    public void differentFormats(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchHandle handle = rank.newHandle();
        CombineFormat format = context.isCulprit() ? CombineFormat.FP8 : CombineFormat.BF16;
        CombinePlan plan = rank.home(handle).format(format).build();
        requireMismatch(
                () -> rank.call(plan), "combine: ranks disagree on format", "has BF16", "has FP8");
        rank.combineFp8(handle);
    }
}
