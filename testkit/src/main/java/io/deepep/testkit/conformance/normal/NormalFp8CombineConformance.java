package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
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
import org.junit.jupiter.params.provider.MethodSource;

/** Normal-mode combines whose rows travel as FP8, bit for bit. */
@BackendSuite
public record NormalFp8CombineConformance(TestBackend backend) implements NormalSuite {
    /** Those whose channels come in whole groups. */
    static Stream<NormalShape> shapes(TestBackend backend) {
        return NormalShape.all(backend).filter(NormalShape::hasWholeGroups);
    }

    private static CombineResult combine(NormalRank rank, Tensor x, DispatchResult result) {
        CombinePlan.Builder plan = CombinePlan.builder(x, result.handle());
        return rank.context().buffer().combine(plan.format(CombineFormat.FP8).build());
    }

    private static CombineResult combine(NormalRank rank, ScaledRows rows, DispatchResult result) {
        CombinePlan plan = NormalRank.combineOf(rows, result.handle()).build();
        return rank.context().buffer().combine(plan);
    }

    /** Masked and repeated selections, ranks without tokens; then all tokens, twice the same. */
    @Cases
    @MethodSource("shapes")
    public void roundTrip(NormalShape shape, RankContext context) {
        for (NormalRank rank : List.of(shape.raggedRank(context), shape.rank(context))) {
            DispatchResult result = rank.dispatch();
            Tensor once = rank.combineFp8(result.handle());
            Tensor twice = rank.combineFp8(result.handle());
            assertThat(HostTensors.firstDifference(once, twice)).isEqualTo(-1);
            rank.combine(result.handle()); // as BF16 in between
            rank.combineFp8(result.handle());
        }
    }

    @Cases
    @MethodSource("shapes")
    public void expandedWithWeights(NormalShape shape, RankContext context) {
        NormalRank plain = shape.raggedRank(context);
        NormalRank rank = plain.expecting(plain.check().expanded(4));
        DispatchResult result = rank.dispatch(rank.plan().expanded(true).expertAlignment(4));
        rank.combineWithWeights(result.handle(), CombineFormat.FP8);
    }

    @FewForFp8
    public void biasesWeightsAndOut(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchResult result = rank.dispatch();
        requireAll(rank, CombinePlan.builder(rank.outputs(), result.handle()));
    }

    /** Combines rows with biases, weights and an out. */
    private static void requireAll(NormalRank rank, CombinePlan.Builder plan) {
        RankContext context = rank.context();
        Tensor first = rank.world().bias(context.rank(), 0);
        Tensor second = rank.world().bias(context.rank(), 1);
        int tokens = rank.world().routing().numTokens(context.rank());
        Tensor out = context.poisoned(DType.BF16, tokens, rank.world().hidden());
        List<Tensor> given = rank.world().weights(rank.check());
        plan.bias(context.upload(first), context.upload(second))
                .topkWeights(context.upload(given.get(context.rank())))
                .out(out)
                .format(CombineFormat.FP8);
        CombineResult combined = context.buffer().combine(plan.build());
        rank.verifyFp8(combined, first, second);
        assertThat(combined.x().address()).isEqualTo(out.address());
        rank.verifyWeights(combined, given);
    }

    /** Rows that begin anywhere. */
    @FewForFp8
    public void rowsWithGaps(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        NormalDispatchCheck check = rank.check();
        DispatchResult result = rank.dispatch();
        Tensor outputs = rank.world().outputs(check).get(context.rank());
        for (int gap : new int[] {8, 3}) {
            Tensor x = context.upload(HostTensors.withRowGap(outputs, gap));
            rank.verifyFp8(combine(rank, x, result));
        }
    }

    /** Rows that are FP8 already, in the buffer and elsewhere, give the bits of those cast here. */
    @Cases
    @MethodSource("shapes")
    public void givenRows(NormalShape shape, RankContext context) {
        for (NormalRank rank : List.of(shape.raggedRank(context), shape.rank(context))) {
            DispatchResult result = rank.dispatch();
            Tensor cast = rank.combineFp8(result.handle());
            Tensor inBuffer = rank.combineFp8Rows(result.handle());
            ScaledRows own = rank.upload(rank.fp8Outputs());
            Tensor elsewhere = rank.verifyFp8(combine(rank, own, result));
            assertThat(HostTensors.firstDifference(cast, inBuffer)).isEqualTo(-1);
            assertThat(HostTensors.firstDifference(cast, elsewhere)).isEqualTo(-1);
            rank.combine(result.handle()); // as BF16 over the FP8 rows
        }
    }

    @FewForFp8
    public void givenRowsWithBiasesWeightsAndOut(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchResult result = rank.dispatch();
        ScaledRows rows = rank.fp8Outputs();
        for (ScaledRows where : List.of(rank.upload(rows), rank.inBuffer(rows, result.handle()))) {
            // The first combine copies its rows to where the second has them.
            requireAll(rank, NormalRank.combineOf(where, result.handle()));
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
    @Cases
    @MethodSource("shapes")
    public void anyCodesAndScales(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalDispatchCheck check = rank.check();
        DispatchResult result = rank.dispatch();
        List<ScaledRows> sent =
                context.shared(
                        "any rows",
                        _ ->
                                IntStream.range(0, context.topology().numRanks())
                                        .mapToObj(r -> anyRows(r, check.numRows(r), shape.hidden()))
                                        .toList());
        ScaledRows before = rank.fp8Outputs();
        for (ScaledRows rows :
                List.of(rank.inBuffer(before, result.handle()), rank.upload(before))) {
            rank.write(before, rows);
            CombinePlan plan = NormalRank.combineOf(rows, result.handle()).build();
            rank.verifyFp8(context.buffer().combine(plan));
            rank.write(sent.get(context.rank()), rows);
            rank.verifyFp8Rows(context.buffer().combine(plan), sent);
        }
    }

    /** Rows that begin on any byte, and scales with any strides. */
    @FewForFp8
    public void givenRowsAnywhere(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchResult result = rank.dispatch();
        ScaledRows rows = rank.fp8Outputs();
        for (int gap : new int[] {1, 4, 16}) {
            for (Tensor scales :
                    List.of(
                            HostTensors.withRowGap(rows.scales(), gap),
                            HostTensors.columnMajor(rows.scales()))) {
                Tensor elements = HostTensors.withRowGap(rows.elements(), gap);
                ScaledRows moved = rank.upload(new ScaledRows(elements, scales));
                rank.verifyFp8(combine(rank, moved, result));
            }
        }
    }

    /** Each rank has its rows in another form; the sums are the same. */
    @FewForFp8
    public void ranksGiveDifferentForms(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchResult result = rank.dispatch();
        for (int round = 0; round < 3; round++) {
            switch ((context.rank() + round) % 3) {
                case 0 -> rank.combineFp8(result.handle());
                case 1 -> rank.combineFp8Rows(result.handle());
                default -> {
                    ScaledRows own = rank.upload(rank.fp8Outputs());
                    rank.verifyFp8(combine(rank, own, result));
                }
            }
        }
    }

    /** What was received as FP8 may go home as it came. */
    @Cases
    @MethodSource("fp8Shapes")
    public void receivedRowsGoHome(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        List<ScaledRows> received =
                context.shared(
                        "received",
                        _ ->
                                IntStream.range(0, context.topology().numRanks())
                                        .mapToObj(rank.world()::received)
                                        .map(rows -> new ScaledRows(rows.x(), rows.scales()))
                                        .toList());
        for (DispatchPlan.Receive how : DispatchPlan.Receive.values()) {
            DispatchResult result = rank.dispatch(rank.plan().receive(how));
            ScaledRows rows = new ScaledRows(result.recvX(), result.recvScales());
            rank.verifyFp8Rows(combine(rank, rows, result), received);
            rank.verifyFp8Rows(combine(rank, rows, result), received);
        }
    }

    static Stream<NormalShape> fp8Shapes(TestBackend backend) {
        return NormalShape.fewForFp8(backend).filter(shape -> shape.dtype() == DType.FP8_E4M3);
    }

    /** The expanded layout is summed as BF16. */
    @FewForFp8
    public void givenRowsOfTheExpandedLayoutAreRefused(NormalShape shape, RankContext context) {
        NormalRank plain = shape.rank(context);
        NormalRank rank = plain.expecting(plain.check().expanded(4));
        DispatchResult result = rank.dispatch(rank.plan().expanded(true).expertAlignment(4));
        ScaledRows rows = rank.upload(rank.fp8Outputs());
        assertThatThrownBy(() -> combine(rank, rows, result))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("give BF16 rows");
        assertThatThrownBy(() -> context.buffer().getFp8CombineBuffer(result.handle()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("the handle is expanded");
        rank.combineFp8(result.handle());
    }

    /** A scale is of 128 channels; LogFMT is low-latency mode's. */
    @Few
    public void whatCannotTravelIsRefused(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchResult result = rank.dispatch();
        Tensor x = rank.outputs();
        assertThatThrownBy(
                        () -> CombinePlan.builder(x, result.handle()).format(CombineFormat.LOGFMT))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("LOGFMT");
        if (!shape.hasWholeGroups()) {
            assertThatThrownBy(() -> context.buffer().getFp8CombineBuffer(result.handle()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("hidden=" + shape.hidden());
            assertThatThrownBy(() -> combine(rank, x, result))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("hidden=" + shape.hidden())
                    .hasMessageContaining("128");
        }
        rank.combine(result.handle());
    }

    /** The region that rows are cast into cannot hold what is cast. */
    @FewForFp8
    public void combineRegionIsRefused(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalDispatchCheck check = rank.check();
        DispatchResult result = rank.dispatch();
        Tensor x = context.buffer().getCombineBuffer(result.handle());
        assertThatThrownBy(() -> combine(rank, x, result))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("combine region")
                .hasMessageContaining("other memory");
        ScaledRows rows = context.buffer().getFp8CombineBuffer(result.handle());
        ScaledRows apart =
                new ScaledRows(rows.elements(), context.upload(rank.fp8Outputs().scales()));
        if (check.numRows(context.rank()) > 0) {
            assertThatThrownBy(() -> combine(rank, apart, result))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("combine region")
                    .hasMessageContaining("getFp8CombineBuffer");
        }
        rank.combineFp8(result.handle());
    }

    /** NaN stays where it is; infinity outshines its group; zeros and tiny numbers. */
    @FewForFp8
    public void specialValues(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        NormalDispatchCheck check = rank.check();
        DispatchResult result = rank.dispatch();
        List<Tensor> sent = context.shared("special", _ -> spoiled(rank.world().outputs(check)));
        Tensor x = context.upload(sent.get(context.rank()));
        rank.verify(combine(rank, x, result), CombineFormat.FP8, sent);
        rank.combineFp8(result.handle());
    }

    private static List<Tensor> spoiled(List<Tensor> outputs) {
        float[] values = {
            Float.NaN, Float.POSITIVE_INFINITY, 0, Float.MIN_VALUE, 1e-6f, 3e38f, -0f
        };
        List<Tensor> all = new ArrayList<>();
        for (Tensor output : outputs) {
            Tensor copy = HostTensors.allocate(DType.BF16, output.shape());
            HostTensors.copy(output, copy);
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
    @FewForFp8
    public void nothingAndEverything(NormalShape shape, RankContext context) {
        for (NormalRank rank :
                List.of(
                        shape.rank(context, shape.spec().withMaskedShare(1)),
                        shape.rank(context, shape.spec().withGate(new Gate.AllToOne(0))))) {
            DispatchResult result = rank.dispatch();
            rank.combineFp8(result.handle());
            rank.combineFp8Rows(result.handle());
            ScaledRows own = rank.upload(rank.fp8Outputs());
            rank.verifyFp8(combine(rank, own, result));
        }
    }

    @FewForFp8
    public void asynchronousChain(NormalShape shape, RankContext context) {
        NormalConformance.chain(shape.raggedRank(context), CombineFormat.FP8);
    }

    /** One rank combines as FP8, the others as BF16: all learn it. */
    @FewForFp8
    public void differentFormats(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        DispatchResult result = rank.dispatch();
        CombinePlan plan =
                CombinePlan.builder(rank.outputs(), result.handle())
                        .format(context.isCulprit() ? CombineFormat.FP8 : CombineFormat.BF16)
                        .build();
        requireMismatch(
                () -> rank.call(plan), "combine: ranks disagree on format", "has BF16", "has FP8");
        rank.combineFp8(result.handle());
    }
}
