package io.deepep.bench.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.bench.measure.Accepted;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.OperationRecord.Subject;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.Stream;

/**
 * Makes the operations of normal mode that are measured, with reused plans. Results are the same
 * bits whatever the number of multiprocessors, so those that the oracle has accepted once are
 * accepted again; any other goes to the oracle.
 */
public final class NormalOperations implements AutoCloseable {
    private static final String DISPATCH = "dispatch";
    private static final String CACHED_DISPATCH = "dispatch-cached";
    private static final String CAST_COMBINE = "combine";

    /** What records call them. */
    static final List<String> NAMES =
            Stream.concat(
                            Stream.of(DISPATCH, CACHED_DISPATCH, CAST_COMBINE),
                            Stream.of(CombineSource.values()).map(CombineSource::operation))
                    .toList();

    private final NormalSetup setup;
    private final Session session;
    private final TokenPool pool;
    private final NormalWorkload workload;
    private final NormalBytes bytes;
    private final Accepted accepted = new Accepted();

    NormalOperations(NormalSetup setup) {
        this.setup = setup;
        session = setup.session();
        pool = setup.pool();
        workload = setup.workload();
        bytes = new NormalBytes(session.job());
    }

    /**
     * Opens the buffers of a job for its operations alone, and verifies dispatch and combine once.
     *
     * @throws AssertionError if a result is wrong
     */
    public static NormalOperations open(Job job, IntFunction<RankSource> ranks) {
        NormalSetup setup = NormalSetup.open(job, Map.of(), ranks);
        NormalBench.cases(setup).forEach(Case::run);
        return new NormalOperations(setup);
    }

    /** The rank threads. */
    public RankTeam team() {
        return session.team();
    }

    private DispatchPlan plan(int rank, DType dtype, int sms) {
        return workload.dispatchTopk(rank, dtype).config(config(sms)).build();
    }

    private Config config(int sms) {
        return session.job().dispatchConfig().withNumSms(sms);
    }

    /** Dispatch with top-k. */
    public MeasuredCall dispatch(DType dtype, int sms) {
        return dispatch(
                new Subject(DISPATCH, name(dtype), sms),
                dtype,
                session.ask(rank -> plan(rank, dtype, sms)),
                workload.check(dtype));
    }

    /** Dispatch with the routing of an earlier one. Dispatches once, for the handles. */
    public MeasuredCall cachedDispatch(DType dtype, int sms) {
        return dispatch(
                new Subject(CACHED_DISPATCH, name(dtype), sms),
                dtype,
                session.ask(
                        rank ->
                                workload.dispatch(rank, dtype)
                                        .cached(received(rank, dtype, sms).handle())
                                        .config(config(sms))
                                        .build()),
                workload.check(dtype).withoutTopk());
    }

    private DispatchResult received(int rank, DType dtype, int sms) {
        return session.buffer(rank).dispatch(plan(rank, dtype, sms));
    }

    private static String name(DType dtype) {
        return dtype.name().toLowerCase(Locale.ROOT);
    }

    private MeasuredCall dispatch(
            Subject subject, DType dtype, List<DispatchPlan> plans, NormalDispatchCheck check) {
        DispatchResult[] latest = new DispatchResult[plans.size()];
        return new MeasuredCall(
                subject,
                true,
                bytes.wireRowBytes(dtype),
                bytes.busiestLinkBytes(dtype),
                bytes.dispatch(dtype),
                (rank, options) -> {
                    latest[rank] = session.buffer(rank).dispatch(plans.get(rank), options);
                    return latest[rank].event();
                },
                rank -> {
                    try (Downloads downloads = session.downloads(rank)) {
                        accepted.accept(
                                rank,
                                subject.op() + subject.dtype(),
                                Fingerprint.of(latest[rank], downloads),
                                () -> check.check(rank, latest[rank], downloads));
                    }
                });
    }

    /**
     * Combine of rows that travel in {@code format}; those from elsewhere are cast by the call.
     * Dispatches once, for the handles.
     */
    public MeasuredCall combine(CombineSource input, CombineFormat format, int sms) {
        boolean fp8 = format == CombineFormat.FP8;
        String name = fp8 && input == CombineSource.ELSEWHERE ? CAST_COMBINE : input.operation();
        DType sent = fp8 ? DType.FP8_E4M3 : DType.BF16;
        DType given = input == CombineSource.BUFFER ? sent : DType.BF16;
        List<DispatchResult> received = session.ask(rank -> received(rank, DType.BF16, sms));
        Config config = session.job().combineConfig().withNumSms(sms);
        List<CombinePlan> plans =
                session.ask(
                        rank ->
                                pool.combine(rank, input, format, received.get(rank))
                                        .config(config)
                                        .build());
        NormalCombineOracle oracle =
                NormalCombineOracle.of(
                                workload.check(DType.BF16), session.job().topology().numNvlRanks())
                        .at((source, place) -> place % Rows.DIFFERENT_ROWS);
        CombineResult[] latest = new CombineResult[plans.size()];
        return new MeasuredCall(
                new Subject(name, name(sent), sms),
                false,
                bytes.wireRowBytes(sent),
                bytes.busiestLinkBytes(sent),
                bytes.combine(given, sent),
                (rank, options) -> {
                    latest[rank] = session.buffer(rank).combine(plans.get(rank), options);
                    return latest[rank].event();
                },
                rank -> {
                    try (Downloads downloads = session.downloads(rank)) {
                        accepted.accept(
                                rank,
                                input + name + format,
                                Fingerprint.of(latest[rank], downloads),
                                () ->
                                        oracle.check(
                                                rank,
                                                format,
                                                pool.differentOutputs(),
                                                List.of(),
                                                downloads.apply(latest[rank].x())));
                    }
                });
    }

    @Override
    public void close() {
        setup.close();
    }
}
