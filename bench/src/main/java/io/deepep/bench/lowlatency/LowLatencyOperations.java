package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.OperationRecord.Subject;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Session;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;
import java.util.stream.Stream;

/** Operations of low-latency mode with reused plans, as they are measured. */
public final class LowLatencyOperations implements AutoCloseable {
    private static final String DISPATCH = "ll-dispatch";

    /** What records call them. */
    static final List<String> NAMES =
            Stream.of(
                            Stream.of(DISPATCH, nameOf(false, CombineRows.BF16)),
                            Stream.of(CombineRows.values()).map(rows -> nameOf(true, rows)))
                    .flatMap(names -> names)
                    .toList();

    private final LowLatencySetup setup;
    private final Session session;
    private final LowLatencyWorkload workload;
    private final LowLatencyBytes bytes;

    LowLatencyOperations(LowLatencySetup setup) {
        this.setup = setup;
        session = setup.session();
        workload = setup.workload();
        bytes = new LowLatencyBytes(setup.job());
    }

    /**
     * Opens the buffers of a job for its operations alone, and verifies every format once.
     *
     * @throws AssertionError if a result is wrong
     */
    public static LowLatencyOperations open(Job job, IntFunction<RankSource> ranks) {
        LowLatencySetup setup = LowLatencySetup.open(job, ranks);
        LowLatencyBench.cases(setup).forEach(Case::run);
        return new LowLatencyOperations(setup);
    }

    /** The rank threads. */
    public RankTeam team() {
        return session.team();
    }

    private List<LowLatencyDispatchPlan> plans(LowLatencyFormat format, boolean weighted, int sms) {
        return session.ask(rank -> workload.dispatch(rank, format, weighted).numSms(sms).build());
    }

    /** Dispatch. */
    public MeasuredCall dispatch(LowLatencyFormat format, int sms) {
        List<LowLatencyDispatchPlan> plans = plans(format, false, sms);
        LowLatencyDispatchResult[] latest = new LowLatencyDispatchResult[plans.size()];
        return new MeasuredCall(
                new Subject(DISPATCH, format.name().toLowerCase(Locale.ROOT), sms),
                true,
                bytes.dispatchWireRowBytes(format),
                bytes.busiestLinkRows() * bytes.dispatchWireRowBytes(format),
                bytes.dispatch(format),
                (rank, options) -> {
                    latest[rank] =
                            session.buffer(rank).lowLatencyDispatch(plans.get(rank), options);
                    return latest[rank].event();
                },
                rank -> workload.verify(rank, format, latest[rank]));
    }

    /**
     * Combine of what experts computed. Dispatches once, for the handles; so it is to be measured
     * before the next dispatch is made.
     */
    public MeasuredCall combine(boolean zeroCopy, CombineRows home, int sms) {
        List<LowLatencyDispatchPlan> dispatches =
                plans(LowLatencyFormat.BF16, home.preReduced(), sms);
        List<LowLatencyCombinePlan> plans =
                session.ask(rank -> combine(rank, dispatches.get(rank), zeroCopy, home, sms));
        LowLatencyCombineResult[] latest = new LowLatencyCombineResult[plans.size()];
        return new MeasuredCall(
                new Subject(nameOf(zeroCopy, home), "bf16", sms),
                true,
                bytes.combineRowBytes(home),
                bytes.busiestLinkRows(home) * bytes.combineRowBytes(home),
                bytes.combine(home),
                (rank, options) -> {
                    latest[rank] = session.buffer(rank).lowLatencyCombine(plans.get(rank), options);
                    return latest[rank].event();
                },
                rank -> workload.verify(rank, home, latest[rank].x()));
    }

    private LowLatencyCombinePlan combine(
            int rank,
            LowLatencyDispatchPlan dispatch,
            boolean zeroCopy,
            CombineRows home,
            int sms) {
        LowLatencyHandle handle = session.buffer(rank).lowLatencyDispatch(dispatch).handle();
        Tensor input = zeroCopy ? workload.outputsInBuffer(rank, handle) : workload.outputs(rank);
        return workload.combine(rank, input, handle, home).numSms(sms).build();
    }

    private static String nameOf(boolean zeroCopy, CombineRows home) {
        return switch (home) {
            case BF16 -> zeroCopy ? "ll-combine-zero-copy" : "ll-combine-staged";
            case FP8 -> "ll-combine-fp8";
            case LOGFMT -> "ll-combine-logfmt";
            case PRE_REDUCED -> "ll-combine-pre-reduced";
            case PRE_REDUCED_FP8 -> "ll-combine-pre-reduced-fp8";
        };
    }

    @Override
    public void close() {
        setup.close();
    }
}
