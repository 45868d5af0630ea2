package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misuse.argument;
import static io.deepep.testkit.conformance.Misuse.missing;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.conformance.Misuse;
import io.deepep.testkit.conformance.normal.NormalMisuses.Rank;
import java.util.stream.Stream;

/**
 * Combines and small calls of normal mode that must be refused; the numbers are those of {@link
 * NormalMisuses}.
 */
final class NormalCombineMisuses {
    private static final int TOKENS = NormalMisuses.TOKENS;
    private static final int HIDDEN = NormalMisuses.HIDDEN;

    private NormalCombineMisuses() {}

    static Stream<Misuse<Rank>> combines() {
        return Stream.concat(inputs(), outputs());
    }

    private static Stream<Misuse<Rank>> inputs() {
        return Stream.of(
                argument(
                        "combined rows are missing",
                        "x",
                        r ->
                                r.combineX(
                                        r.tensor(
                                                DType.BF16,
                                                r.handle().numRecvTokens() - 1,
                                                HIDDEN))),
                argument(
                        "combined rows are too narrow",
                        "120",
                        r -> r.combineX(r.tensor(DType.BF16, r.handle().numRecvTokens(), 120))),
                argument(
                        "combined rows are F32",
                        "F32",
                        r -> r.combineX(r.tensor(DType.F32, r.handle().numRecvTokens(), HIDDEN))),
                argument(
                        "combined rows lie elsewhere",
                        "x",
                        r -> r.combineX(Misuse.elsewhere(r.inputs().context(), r.good()))),
                argument(
                        "weights of too few rows",
                        "eights",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .topkWeights(r.tensor(DType.F32, 1, 4)))),
                argument(
                        "bias of too few tokens",
                        "bias",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .bias(r.tensor(DType.BF16, 9, HIDDEN)))),
                argument(
                        "second bias is F32",
                        "bias",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .bias(
                                                        r.tensor(DType.BF16, TOKENS, HIDDEN),
                                                        r.tensor(DType.F32, TOKENS, HIDDEN)))));
    }

    private static Stream<Misuse<Rank>> outputs() {
        return Stream.of(
                argument(
                        "out of too few tokens",
                        "out",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .out(r.tensor(DType.BF16, 9, HIDDEN)))),
                argument(
                        "out lies in the NVL buffer",
                        "out is BF16[10, 128]",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .out(r.inBuffer(DType.BF16, TOKENS, HIDDEN)))),
                argument(
                        "bias lies in the NVL buffer",
                        "bias0 is BF16[10, 128]",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .bias(r.inBuffer(DType.BF16, TOKENS, HIDDEN)))),
                argument(
                        "out has all rows at one address",
                        "lie over one another",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .out(
                                                        Misuse.repeated(
                                                                r.tensor(
                                                                        DType.BF16,
                                                                        TOKENS,
                                                                        HIDDEN))))),
                argument("out is x", "out overlaps x", NormalCombineMisuses::combineInto),
                argument(
                        "out is F32",
                        "out",
                        r ->
                                r.combine(
                                        CombinePlan.builder(r.good(), r.handle())
                                                .out(r.tensor(DType.F32, TOKENS, HIDDEN)))),
                missing("no combined rows", "x", r -> CombinePlan.builder(null, r.handle())),
                missing("no handle", "handle", r -> CombinePlan.builder(r.good(), null)),
                missing(
                        "no combine plan",
                        "plan",
                        r -> r.inputs().context().buffer().combine(null)));
    }

    /** The sums into the rows that are summed. */
    private static void combineInto(Rank r) {
        Tensor both = r.tensor(DType.BF16, TOKENS + r.handle().numRecvTokens(), HIDDEN);
        r.combine(
                CombinePlan.builder(both.slice(0, 0, r.handle().numRecvTokens()), r.handle())
                        .out(both.slice(0, r.handle().numRecvTokens() - 1, TOKENS)));
    }

    static Stream<Misuse<Rank>> others() {
        return Stream.of(
                argument(
                        "layout of I32 indices",
                        "topkIdx",
                        r ->
                                r.inputs()
                                        .context()
                                        .buffer()
                                        .getDispatchLayout(r.tensor(DType.I32, TOKENS, 4), 16)),
                argument(
                        "layout of odd experts",
                        "numExperts=15",
                        r ->
                                r.inputs()
                                        .context()
                                        .buffer()
                                        .getDispatchLayout(r.inputs().topkIdx(), 15)),
                missing(
                        "combine buffer of no handle",
                        "handle",
                        r -> r.inputs().context().buffer().getCombineBuffer(null)),
                argument(
                        "misaligned view",
                        "offset=1",
                        r ->
                                r.inputs()
                                        .context()
                                        .buffer()
                                        .getLocalBufferTensor(DType.BF16, 1, 1, false)),
                argument(
                        "view past the end",
                        "bytes",
                        r ->
                                r.inputs()
                                        .context()
                                        .buffer()
                                        .getLocalBufferTensor(DType.BF16, 1L << 40, 0, false)),
                argument(
                        "view of more bytes than a long counts",
                        "bytes",
                        r ->
                                r.inputs()
                                        .context()
                                        .buffer()
                                        .getLocalBufferTensor(
                                                DType.BF16, Long.MAX_VALUE, 0, false)),
                missing(
                        "no options",
                        "options",
                        r -> {
                            var inputs = r.inputs();
                            inputs.context().buffer().dispatch(inputs.plan().build(), null);
                        }),
                new Misuse<>(
                        "a mode that is not open",
                        IllegalStateException.class,
                        "lowLatency",
                        r -> r.inputs().context().buffer().lowLatencyQueryMask()));
    }
}
