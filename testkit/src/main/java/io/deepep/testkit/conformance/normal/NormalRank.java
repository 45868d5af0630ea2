package io.deepep.testkit.conformance.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Fp8E4m3;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;

/**
 * One rank's share of a {@link NormalWorld}: its inputs on its device, and its results compared
 * with the oracle.
 */
public final class NormalRank {
    private final RankContext context;
    private final NormalWorld world;
    private final NormalDispatchCheck check;
    private final Tensor x;
    private final Tensor scales;
    private final Tensor topkIdx;
    private final Tensor weights;

    public NormalRank(RankContext context, NormalWorld world) {
        this.context = context;
        this.world = world;
        this.check = world.check();
        int rank = context.rank();
        x = context.upload(world.tokens().get(rank).x());
        scales = context.upload(world.tokens().get(rank).scales());
        topkIdx = context.upload(world.routing().topkIdxTensor(rank));
        weights = context.upload(world.routing().weightsTensor(rank));
    }

    private NormalRank(NormalRank same, NormalDispatchCheck check) {
        this.context = same.context;
        this.world = same.world;
        this.check = check;
        this.x = same.x;
        this.scales = same.scales;
        this.topkIdx = same.topkIdx;
        this.weights = same.weights;
    }

    /** The same rank, whose plans ask for another form of dispatch. */
    public NormalRank expecting(NormalDispatchCheck form) {
        return new NormalRank(this, form);
    }

    /** What its dispatches must give. */
    public NormalDispatchCheck check() {
        return check;
    }

    public RankContext context() {
        return context;
    }

    public NormalWorld world() {
        return world;
    }

    public Tensor x() {
        return x;
    }

    public Tensor scales() {
        return scales;
    }

    public Tensor topkIdx() {
        return topkIdx;
    }

    public Tensor weights() {
        return weights;
    }

    /** Writes the inputs of another exchange of the same shape over this one's. */
    public void load(NormalRank other) {
        context.copy(other.x, x);
        if (scales != null) {
            context.copy(other.scales, scales);
        }
        context.copy(other.topkIdx, topkIdx);
        context.copy(other.weights, weights);
    }

    /** With indices and weights. */
    public DispatchPlan.Builder plan() {
        return bare().topk(topkIdx, weights, world.routing().numExperts());
    }

    /** Without routing. */
    public DispatchPlan.Tokens bare() {
        return DispatchPlan.builder(x, scales);
    }

    /** Makes a call and waits for its end. */
    public void call(DispatchPlan plan) {
        context.buffer().dispatch(plan).event().synchronize();
    }

    /** Makes a call and waits for its end. */
    public void call(CombinePlan plan) {
        context.buffer().combine(plan).event().synchronize();
    }

    /** Dispatches with indices and weights, and compares. */
    public DispatchResult dispatch() {
        return dispatch(plan());
    }

    /** Dispatches and compares. */
    public DispatchResult dispatch(DispatchPlan.Builder plan) {
        return verify(context.buffer().dispatch(plan.build()));
    }

    /** Compares and returns a dispatch's result. */
    public DispatchResult verify(DispatchResult result) {
        result.event().synchronize();
        check.check(context.rank(), result, context::download);
        return result;
    }

    /** Dispatches as {@code plan} says, combines the expert outputs, and compares both. */
    public Tensor roundTrip(DispatchPlan.Builder plan) {
        return combine(dispatch(plan).handle());
    }

    /** The same, where the plan asks for another form. */
    public void roundTrip(DispatchPlan.Builder plan, NormalDispatchCheck form) {
        expecting(form).roundTrip(plan);
    }

    /** This rank's expert outputs on the device. */
    public Tensor outputs() {
        return context.upload(world.outputs(check).get(context.rank()));
    }

    /** The same as FP8 rows, on the host. */
    public ScaledRows fp8Outputs() {
        Tensor rows = world.outputs(check).get(context.rank());
        long groups = rows.size(1) / Fp8E4m3.CHANNELS_PER_SCALE;
        Tensor codes = HostTensors.allocate(DType.FP8_E4M3, rows.shape());
        Tensor ofCodes = HostTensors.allocate(DType.F32, rows.size(0), groups);
        Fp8E4m3.quantize(rows, codes, ofCodes);
        return new ScaledRows(codes, ofCodes);
    }

    /** FP8 rows in memory of the device. */
    ScaledRows upload(ScaledRows rows) {
        return new ScaledRows(context.upload(rows.elements()), context.upload(rows.scales()));
    }

    /** FP8 rows in the buffer's memory for them. */
    ScaledRows inBuffer(ScaledRows rows, DispatchHandle handle) {
        ScaledRows target = context.buffer().getFp8CombineBuffer(handle);
        write(rows, target);
        return target;
    }

    /** Writes FP8 rows of the host over some of the device. */
    void write(ScaledRows rows, ScaledRows target) {
        context.backend().write(rows.elements(), target.elements());
        context.backend().write(rows.scales(), target.scales());
    }

    /** Combines the expert outputs and compares. */
    public Tensor combine(DispatchHandle handle) {
        CombinePlan plan = CombinePlan.builder(outputs(), handle).build();
        return verify(context.buffer().combine(plan));
    }

    /** Combines the expert outputs in FP8 and compares. */
    public Tensor combineFp8(DispatchHandle handle) {
        CombinePlan plan = CombinePlan.builder(outputs(), handle).format(CombineFormat.FP8).build();
        return verifyFp8(context.buffer().combine(plan));
    }

    /** Combines the expert outputs with weights, and compares both. */
    void combineWithWeights(DispatchHandle handle, CombineFormat format) {
        List<Tensor> given = world.weights(check);
        CombinePlan plan =
                CombinePlan.builder(outputs(), handle)
                        .format(format)
                        .topkWeights(context.upload(given.get(context.rank())))
                        .build();
        CombineResult combined = context.buffer().combine(plan);
        verify(combined, format, world.outputs(check));
        verifyWeights(combined, given);
    }

    /** A combine of FP8 rows. */
    static CombinePlan.Builder combineOf(ScaledRows rows, DispatchHandle handle) {
        return CombinePlan.builder(rows.elements(), handle).scales(rows.scales());
    }

    /** Combines the expert outputs, written into the buffer as FP8, and compares. */
    public Tensor combineFp8Rows(DispatchHandle handle) {
        CombinePlan plan = combineOf(inBuffer(fp8Outputs(), handle), handle).build();
        return verifyFp8(context.buffer().combine(plan));
    }

    /**
     * Compares a combine of the expert outputs, with these biases (host tensors), and returns it on
     * the host.
     */
    public Tensor verify(CombineResult result, Tensor... biases) {
        return verify(result, CombineFormat.BF16, world.outputs(check), biases);
    }

    /** Compares a combine of the expert outputs in FP8, bit for bit; returns it on the host. */
    public Tensor verifyFp8(CombineResult result, Tensor... biases) {
        return verify(result, CombineFormat.FP8, world.outputs(check), biases);
    }

    /** Compares a combine of any rows. */
    public Tensor verify(
            CombineResult result, CombineFormat format, List<Tensor> sent, Tensor... biases) {
        result.event().synchronize();
        Tensor combined = context.download(result.x());
        world.combineOracle(context.topology(), check)
                .check(context.rank(), format, sent, List.of(biases), combined);
        return combined;
    }

    /** Compares a combine of any FP8 rows, bit for bit. */
    void verifyFp8Rows(CombineResult result, List<ScaledRows> rows) {
        result.event().synchronize();
        world.combineOracle(context.topology(), check)
                .checkFp8Rows(context.rank(), rows, List.of(), context.download(result.x()));
    }

    /** Compares the weights of a combine that was given those of {@code given}. */
    public void verifyWeights(CombineResult result, List<Tensor> given) {
        world.combineOracle(context.topology(), check)
                .checkWeights(context.rank(), given, context.download(result.topkWeights()));
    }

    /**
     * Dispatches with indices and weights, combines the expert outputs, compares both, and returns
     * what was combined.
     */
    public Tensor roundTrip() {
        return roundTrip(plan());
    }
}
