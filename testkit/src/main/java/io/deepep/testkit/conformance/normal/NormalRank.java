package io.deepep.testkit.conformance.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Fp8E4m3;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.LayoutCheck;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;

/** One rank's share of a {@link NormalWorld}. */
public final class NormalRank extends ExchangeRank<NormalWorld, DispatchHandle> {
    private final NormalDispatchCheck check;
    private final Tensor scales;

    public NormalRank(RankContext context, NormalWorld world) {
        super(context, world);
        check = world.check();
        scales = context.upload(world.tokens().get(context.rank()).scales());
    }

    private NormalRank(NormalRank same, NormalDispatchCheck check) {
        super(same);
        this.check = check;
        this.scales = same.scales;
    }

    /** The same rank, whose plans ask for another form of dispatch. */
    public NormalRank expecting(NormalDispatchCheck form) {
        return new NormalRank(this, form);
    }

    /** The rank's share of another exchange, in the same form. */
    NormalRank of(NormalWorld other) {
        return new NormalRank(context(), other)
                .expecting(check.with(other.oracle(), other.tokens()));
    }

    /** What its dispatches must give. */
    public NormalDispatchCheck check() {
        return check;
    }

    public Tensor scales() {
        return scales;
    }

    /** Writes the inputs of another exchange of the same shape over this one's. */
    public void load(NormalRank other) {
        loadInputs(other);
        if (scales != null) {
            context().copy(other.scales, scales);
        }
    }

    /** With indices and weights, in the form that is expected. */
    public DispatchPlan.Builder plan() {
        return plan(topkIdx());
    }

    private DispatchPlan.Builder plan(Tensor idx) {
        return bare().topk(
                        idx, check.withWeights() ? weights() : null, world().routing().numExperts())
                .expanded(check.expanded())
                .expertAlignment(check.alignment())
                .numWorstTokens(check.worstRows());
    }

    /** Without routing. */
    public DispatchPlan.Tokens bare() {
        return DispatchPlan.builder(x(), scales);
    }

    @Override
    public DispatchPlan planOf(Tensor idx) {
        return plan(idx).build();
    }

    /** Dispatches with indices and weights, and compares. */
    public DispatchResult dispatch() {
        return dispatch(plan());
    }

    /** Dispatches and compares. */
    public DispatchResult dispatch(DispatchPlan.Builder plan) {
        return verify(context().buffer().dispatch(plan.build()));
    }

    /** Counts the layout of its tokens, and compares. */
    DispatchLayout layout() {
        int numExperts = world().routing().numExperts();
        DispatchLayout layout = context().buffer().getDispatchLayout(topkIdx(), numExperts);
        layout.event().synchronize();
        LayoutCheck.check(world().oracle(), context().topology(), layout, context()::download);
        return layout;
    }

    @Override
    public DispatchHandle newHandle() {
        return dispatch().handle();
    }

    /** Compares and returns a dispatch's result. */
    public DispatchResult verify(DispatchResult result) {
        result.event().synchronize();
        check.check(context().rank(), result, context()::download);
        return result;
    }

    /** Dispatches as {@code plan} says, combines the expert outputs, and compares both. */
    public Tensor roundTrip(DispatchPlan.Builder plan) {
        return combine(dispatch(plan).handle());
    }

    /** This rank's expert outputs, on the host. */
    Tensor hostOutputs() {
        return world().outputs(check).get(context().rank());
    }

    /** This rank's expert outputs on the device. */
    public Tensor outputs() {
        return context().upload(hostOutputs());
    }

    /** The buffer's memory for rows that are combined in place, filled with the expert outputs. */
    Tensor filledCombineBuffer(DispatchHandle handle) {
        Tensor own = context().buffer().getCombineBuffer(handle);
        context().backend().write(hostOutputs(), own);
        return own;
    }

    /** The expert outputs as FP8 rows, on the host. */
    public ScaledRows fp8Outputs() {
        Tensor rows = hostOutputs();
        long groups = rows.size(1) / Fp8E4m3.CHANNELS_PER_SCALE;
        Tensor codes = HostTensors.allocate(DType.FP8_E4M3, rows.shape());
        Tensor ofCodes = HostTensors.allocate(DType.F32, rows.size(0), groups);
        Fp8E4m3.quantize(rows, codes, ofCodes);
        return new ScaledRows(codes, ofCodes);
    }

    /** FP8 rows in memory of the device. */
    ScaledRows upload(ScaledRows rows) {
        return new ScaledRows(context().upload(rows.elements()), context().upload(rows.scales()));
    }

    /** FP8 rows in the buffer's memory for them. */
    ScaledRows inBuffer(ScaledRows rows, DispatchHandle handle) {
        ScaledRows target = context().buffer().getFp8CombineBuffer(handle);
        write(rows, target);
        return target;
    }

    /** Writes FP8 rows of the host over some of the device. */
    void write(ScaledRows rows, ScaledRows target) {
        context().backend().write(rows.elements(), target.elements());
        context().backend().write(rows.scales(), target.scales());
    }

    /** A combine of the expert outputs. */
    public CombinePlan.Builder home(DispatchHandle handle) {
        return CombinePlan.builder(outputs(), handle);
    }

    /** A combine of FP8 rows. */
    static CombinePlan.Builder home(ScaledRows rows, DispatchHandle handle) {
        return CombinePlan.builder(rows.elements(), handle).scales(rows.scales());
    }

    @Override
    public Tensor combine(DispatchHandle handle) {
        return combine(home(handle));
    }

    /** Combines the expert outputs in FP8 and compares. */
    public Tensor combineFp8(DispatchHandle handle) {
        return combine(home(handle).format(CombineFormat.FP8));
    }

    /** Combines the expert outputs with weights, and compares both. */
    void combineWithWeights(DispatchHandle handle, CombineFormat format) {
        List<Tensor> given = world().weights(check);
        Tensor own = context().upload(given.get(context().rank()));
        CombinePlan plan = home(handle).format(format).topkWeights(own).build();
        CombineResult combined = context().buffer().combine(plan);
        verify(combined, format, world().outputs(check));
        verifyWeights(combined, given);
    }

    /** Combines the expert outputs, written into the buffer as FP8, and compares. */
    public Tensor combineFp8Rows(DispatchHandle handle) {
        return combine(home(inBuffer(fp8Outputs(), handle), handle));
    }

    /**
     * Combines the expert outputs as {@code plan} says, with these biases (host tensors), and
     * compares; where they travel as FP8, bit for bit. Returns it on the host.
     */
    public Tensor combine(CombinePlan.Builder plan, Tensor... biases) {
        CombinePlan built = plan.build();
        return verify(context().buffer().combine(built), built, biases);
    }

    /** Compares what {@code plan} has combined of the expert outputs. */
    Tensor verify(CombineResult result, CombinePlan plan, Tensor... biases) {
        return verify(result, plan.format(), world().outputs(check), biases);
    }

    /** Compares a combine of the expert outputs, with these biases, and returns it on the host. */
    public Tensor verify(CombineResult result, Tensor... biases) {
        return verify(result, CombineFormat.BF16, world().outputs(check), biases);
    }

    /** Compares a combine of any rows. */
    public Tensor verify(
            CombineResult result, CombineFormat format, List<Tensor> sent, Tensor... biases) {
        Tensor combined = fetch(result);
        combineOracle().check(context().rank(), format, sent, List.of(biases), combined);
        return combined;
    }

    /** Compares a combine of any FP8 rows, bit for bit. */
    void verifyFp8Rows(CombineResult result, List<ScaledRows> rows) {
        combineOracle().checkFp8Rows(context().rank(), rows, fetch(result));
    }

    /** Compares the weights of a combine that was given those of {@code given}. */
    public void verifyWeights(CombineResult result, List<Tensor> given) {
        Tensor combined = context().download(result.topkWeights());
        combineOracle().checkWeights(context().rank(), given, combined);
    }

    private Tensor fetch(CombineResult result) {
        result.event().synchronize();
        return context().download(result.x());
    }

    private NormalCombineOracle combineOracle() {
        return NormalCombineOracle.of(check, context().topology().numNvlRanks());
    }
}
