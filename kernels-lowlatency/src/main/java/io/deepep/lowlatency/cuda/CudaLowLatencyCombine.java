package io.deepep.lowlatency.cuda;

import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.Tensor;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import java.util.Arrays;
import java.util.Objects;

/**
 * A combine on a GPU: one launch, or with a hook one for each half. Rows are sent from where they
 * lie, so every combine is one without a copy.
 */
final class CudaLowLatencyCombine extends CudaLowLatencyOperation<LowLatencyCombineResult> {
    private final LowLatencyCombinePlan plan;
    private final BankHandle<CudaBank> handle;
    private final CudaBank bank;
    private final Tensor out;
    private LowLatencyCombineResult result;

    CudaLowLatencyCombine(
            CudaLowLatencyKernels kernels,
            LowLatencyCombinePlan plan,
            BankHandle<CudaBank> handle,
            CudaBank bank) {
        super(kernels, Kind.COMBINE, kernels.combines, plan);
        this.plan = plan;
        this.handle = handle;
        this.bank = bank;
        this.out =
                plan.out() != null
                        ? plan.out()
                        : kernels.memory.tensor(DType.BF16, handle.numTokens(), plan.hidden());
        int sharedBytes = LowLatencyStructs.combineSharedBytes(plan);
        requireShared(
                sharedBytes,
                plan.isPreReduced() ? "preReduced" : "format=" + plan.format(),
                "combine without it");
        prepare(kernels.gpu.combine(plan), sharedBytes);
    }

    @Override
    CudaBank bank(int index) {
        return bank;
    }

    @Override
    void fill(Params params, int index) {
        LowLatencyLayout layout = kernels.layout;
        Region flags = layout.combineFlags();
        setCells(params, "row", layout.combineRows());
        setCells(params, "pack", layout.combinePacks())
                .set("flag_offset", flags.offset())
                .set("flag_parity_stride", flags.stride0())
                .set("flag_token_stride", flags.stride1())
                .set("flag_part_stride", flags.recordBytes())
                .set("row_stride", LowLatencyLayout.combineRowStride(plan.format(), plan.hidden()))
                .set("pack_stride", layout.combinePacks().recordBytes())
                .set("x_expert_stride", rowBytes(plan.x(), 0))
                .set("x_row_stride", rowBytes(plan.x(), 1))
                .setTensor("topk_weights", plan.topkWeights())
                .set("out", out.address())
                .set("out_stride", rowBytes(out, 0))
                .setInt("row_format", LowLatencyFormats.combineCode(plan));
    }

    @Override
    public void begin() {
        handle.received();
        long combine = open();
        handle.setCombined();
        launch(combine, handle.id());
    }

    /** Where rows come from is known in device memory. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        LowLatencyFormats.describe(facts, plan.format(), plan.hidden());
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
    }

    /**
     * Rows home count every selection, or pre-reduced every rank that a token selects, also those
     * of ranks masked since the dispatch.
     */
    @Override
    void describe(RecordedFacts facts, RunTrace trace) {
        boolean reduced = plan.isPreReduced();
        int[] home = trace.ownRows(reduced);
        int[] sent = reduced ? trace.receivedRows() : trace.receivedSelections();
        facts.tokens(handle.numTokens(), Arrays.stream(home).sum())
                .peers(sent, home)
                .directLinks(home);
    }

    @Override
    public LowLatencyCombineResult result(Event resultEvent, Runnable receiveHook) {
        if (result == null
                || !result.event().equals(resultEvent)
                || !Objects.equals(result.receiveHook(), receiveHook)) {
            result = new LowLatencyCombineResult(out, resultEvent, receiveHook);
        }
        return result;
    }
}
