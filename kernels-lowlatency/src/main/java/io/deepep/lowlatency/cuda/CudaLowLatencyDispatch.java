package io.deepep.lowlatency.cuda;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.lowlatency.DispatchResults;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.Layout;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.util.Arrays;

/** A dispatch on a GPU: one launch, or with a hook one for each half. */
final class CudaLowLatencyDispatch extends CudaLowLatencyOperation<LowLatencyDispatchResult> {
    private final LowLatencyDispatchPlan plan;
    private final int numTokens;
    private final int numTopk;
    private final RowFormat rows;
    private final DispatchResults<CudaBank> results;

    CudaLowLatencyDispatch(CudaLowLatencyKernels kernels, LowLatencyDispatchPlan plan) {
        super(kernels, Kind.DISPATCH, kernels.dispatches, plan);
        this.plan = plan;
        this.numTokens = (int) plan.x().size(0);
        this.numTopk = (int) plan.topkIdx().size(1);
        this.rows = LowLatencyLayout.rows(plan.format(), plan.hidden());
        int sharedBytes = (int) (rowSharedOffset() + rows.selectionsOffset());
        requireShared(
                sharedBytes,
                "numExperts=%s with hidden=%s".formatted(limits.numExperts(), plan.hidden()),
                "use fewer experts");
        this.results = new DispatchResults<>(kernels.dispatches, plan, runs);
        prepare(
                plan.format().isFp8() ? kernels.gpu.dispatchFp8 : kernels.gpu.dispatchBf16,
                sharedBytes);
    }

    private long countsSharedOffset() {
        return Layout.alignToLine((long) Integer.BYTES * limits.numExperts());
    }

    /** After what comes from each source, or the counts of all experts: what is more. */
    private long rowSharedOffset() {
        int firstRows = kernels.place.isSmallNode() ? 0 : numLocalExperts();
        long table = (long) kernels.topology.numRanks() * (headerWords() + firstRows);
        return countsSharedOffset()
                + Layout.alignToLine(Integer.BYTES * Math.max(limits.numExperts(), table));
    }

    private int headerWords() {
        return LowLatencyLayout.dispatchWords(limits, kernels.topology.numRanks());
    }

    @Override
    CudaBank bank(int index) {
        return kernels.dispatches.at(index);
    }

    @Override
    void fill(Params params, int index) {
        CudaBank bank = bank(index);
        setCells(params, "flag", kernels.layout.dispatchFlags());
        setCells(params, "row", kernels.layout.dispatchRows())
                .set("flag_stride", LowLatencyLayout.dispatchFlagBytes(numTopk))
                .set("x_stride", rowBytes(plan.x(), 0))
                .setTensor("topk_weights", plan.topkWeights())
                .set("out_x", results.recvX(index).address())
                .setTensor("out_scales", results.recvScales(index))
                .set("out_src_info", bank.srcInfo().address())
                .set("out_layout_range", bank.layoutRange().address())
                .set("out_counts", bank.count().address())
                .setTensor("cumulative_stats", plan.cumulativeStats())
                .setInt("format", plan.format().ordinal())
                .setInt("header_words", headerWords())
                .setInt("row_stride", (int) rows.strideBytes(numTopk))
                .setInt("selections_offset", (int) rows.selectionsOffset())
                .setInt("weights_offset", (int) rows.weightsOffset(numTopk))
                .setInt("counts_shared_offset", (int) countsSharedOffset())
                .setInt("row_shared_offset", (int) rowSharedOffset())
                .setInt("row_format", LowLatencyFormats.dispatchCode(plan));
    }

    @Override
    public void begin() {
        long dispatch = open();
        results.begin(dispatch);
        launch(dispatch, kernels.dispatches.id(dispatch));
    }

    /** What arrives is counted in device memory. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        facts.rows(rows).tokens(numTokens, RecordedFacts.UNKNOWN);
    }

    @Override
    void describe(RecordedFacts facts, RunTrace trace) {
        int[] sent = trace.ownRows(true);
        int[] experts = trace.counts();
        facts.tokens(numTokens, Arrays.stream(experts).sum())
                .peers(sent, trace.receivedRows())
                .directLinks(sent)
                .experts(experts);
    }

    @Override
    public LowLatencyDispatchResult result(Event event, Runnable receiveHook) {
        return results.result(event, receiveHook);
    }
}
