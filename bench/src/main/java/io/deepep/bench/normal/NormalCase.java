package io.deepep.bench.normal;

import static io.deepep.bench.normal.NormalFeature.ASYNC;
import static io.deepep.bench.normal.NormalFeature.BIAS;
import static io.deepep.bench.normal.NormalFeature.CACHED;
import static io.deepep.bench.normal.NormalFeature.COMBINE_BUFFER;
import static io.deepep.bench.normal.NormalFeature.COMBINE_IN_PLACE;
import static io.deepep.bench.normal.NormalFeature.COPY;
import static io.deepep.bench.normal.NormalFeature.EXPANDED;
import static io.deepep.bench.normal.NormalFeature.FP8_HOME;
import static io.deepep.bench.normal.NormalFeature.OUT;
import static io.deepep.bench.normal.NormalFeature.PREVIOUS_EVENT;
import static io.deepep.bench.normal.NormalFeature.REPEAT;
import static io.deepep.bench.normal.NormalFeature.TOPK;
import static io.deepep.bench.normal.NormalFeature.TWO_BIASES;
import static io.deepep.bench.normal.NormalFeature.WEIGHTS;
import static io.deepep.bench.normal.NormalFeature.WORST_CASE;
import static io.deepep.bench.run.Rows.DIFFERENT_ROWS;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Rows;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.oracle.OracleMismatch;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** One variant on one workload: dispatch, check, combine, check, on all ranks. */
final class NormalCase implements Case {
    private final Session session;
    private final NormalWorkload workload;
    private final TokenPool pool;
    private final NormalVariant variant;
    private final int worstRows;
    private long nanos;

    NormalCase(NormalSetup setup, NormalWorkload workload, NormalVariant variant) {
        this.session = setup.session();
        this.workload = workload;
        this.pool = setup.pool();
        this.variant = variant;
        this.worstRows = setup.worstRows();
    }

    @Override
    public String name() {
        return variant.name();
    }

    @Override
    public long run() {
        nanos = 0;
        List<DispatchPlan> plans = session.ask(this::plan);
        List<DispatchResult> received = dispatch(plans, check());
        if (variant.has(CACHED)) {
            received = dispatch(cached(received), check().withoutTopk());
        }
        List<DispatchResult> toCombine = received;
        List<CombinePlan> combines = session.ask(rank -> combine(rank, toCombine.get(rank)));
        List<CombineResult> combined = combine(combines);
        if (variant.has(REPEAT)) {
            repeat(plans, received, combines, combined);
        }
        return nanos;
    }

    private DispatchPlan plan(int rank) {
        return placed(routed(rank))
                .expertAlignment(variant.alignment())
                .expanded(variant.has(EXPANDED))
                .numWorstTokens(variant.has(WORST_CASE) ? worstRows : 0)
                .build();
    }

    private DispatchPlan.Builder routed(int rank) {
        if (variant.has(TOPK)) {
            return workload.dispatchTopk(rank, variant.dtype());
        }
        return bare(rank)
                .layout(
                        session.buffer(rank)
                                .getDispatchLayout(
                                        workload.topkIdx(rank), workload.routing().numExperts()));
    }

    private DispatchPlan.Tokens bare(int rank) {
        return workload.dispatch(rank, variant.dtype());
    }

    private DispatchPlan.Builder placed(DispatchPlan.Builder plan) {
        return plan.config(session.job().dispatchConfig())
                .receive(variant.has(COPY) ? DispatchPlan.Receive.COPY : DispatchPlan.Receive.VIEW);
    }

    private List<DispatchPlan> cached(List<DispatchResult> first) {
        return session.ask(rank -> placed(bare(rank).cached(first.get(rank).handle())).build());
    }

    private List<DispatchResult> dispatch(List<DispatchPlan> plans, NormalDispatchCheck check) {
        List<DispatchResult> results =
                timed(
                        rank -> {
                            DispatchResult result =
                                    session.buffer(rank).dispatch(plans.get(rank), options(rank));
                            result.event().synchronize();
                            return result;
                        });
        session.run(
                rank -> {
                    try (Downloads downloads = session.downloads(rank)) {
                        check.check(rank, results.get(rank), downloads);
                    }
                });
        return results;
    }

    private NormalDispatchCheck check() {
        NormalDispatchCheck check = workload.check(variant.dtype());
        check =
                variant.has(EXPANDED)
                        ? check.expanded(variant.alignment())
                        : check.aligned(variant.alignment());
        check = variant.has(WORST_CASE) ? check.worstCase(worstRows) : check;
        return variant.has(TOPK) ? check : check.withoutTopk();
    }

    /** A combine of what this rank's experts give back for the rows it received. */
    private CombinePlan combine(int rank, DispatchResult received) {
        CombinePlan.Builder builder =
                variant.has(COMBINE_IN_PLACE)
                        ? CombinePlan.builder(received.recvX(), received.handle()).format(format())
                        : pool.combine(
                                rank,
                                variant.has(COMBINE_BUFFER)
                                        ? CombineSource.BUFFER
                                        : CombineSource.ELSEWHERE,
                                format(),
                                received);
        builder.config(session.job().combineConfig());
        int numTokens = workload.routing().numTokens(rank);
        if (variant.has(WEIGHTS)) {
            builder.topkWeights(received.recvTopkWeights());
        }
        if (variant.has(TWO_BIASES)) {
            builder.bias(
                    pool.bias(rank, 0, numTokens).device().x(),
                    pool.bias(rank, 1, numTokens).device().x());
        } else if (variant.has(BIAS)) {
            builder.bias(pool.bias(rank, 0, numTokens).device().x());
        }
        if (variant.has(OUT)) {
            Tensor stale = Rows.expertOutputs(numTokens, session.job().hidden(), rank);
            builder.out(session.memory(rank).upload(stale));
        }
        return builder.build();
    }

    private List<CombineResult> combine(List<CombinePlan> plans) {
        List<CombineResult> results =
                timed(
                        rank -> {
                            CombineResult result =
                                    session.buffer(rank).combine(plans.get(rank), options(rank));
                            result.event().synchronize();
                            return result;
                        });
        boolean inPlace = variant.has(COMBINE_IN_PLACE);
        NormalCombineOracle oracle =
                NormalCombineOracle.of(check(), session.job().topology().numNvlRanks())
                        .at((source, place) -> inPlace ? source.token() : place % DIFFERENT_ROWS);
        session.run(
                rank -> {
                    CombineResult result = results.get(rank);
                    try (Downloads downloads = session.downloads(rank)) {
                        Tensor x = downloads.apply(result.x());
                        oracle.check(
                                rank,
                                format(),
                                inPlace ? sentBack(rank) : pool.differentOutputs(),
                                biases(rank),
                                x);
                        if (variant.has(WEIGHTS)) {
                            oracle.checkWeights(rank, downloads.apply(result.topkWeights()));
                        }
                    }
                });
        return results;
    }

    /** What every rank gives back of {@code rank}'s tokens in place: the tokens. */
    private List<Tensor> sentBack(int rank) {
        return Collections.nCopies(
                session.job().numRanks(), workload.hostTokens(rank, variant.dtype()));
    }

    private CombineFormat format() {
        return variant.has(FP8_HOME) ? CombineFormat.FP8 : CombineFormat.BF16;
    }

    private List<Tensor> biases(int rank) {
        int number = variant.has(TWO_BIASES) ? 2 : variant.has(BIAS) ? 1 : 0;
        List<Tensor> biases = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            biases.add(pool.bias(rank, i, workload.routing().numTokens(rank)).host().x());
        }
        return biases;
    }

    /** Dispatches and combines once more; both must give the bits that they gave before. */
    private void repeat(
            List<DispatchPlan> plans,
            List<DispatchResult> received,
            List<CombinePlan> combines,
            List<CombineResult> combined) {
        List<Long> before = fingerprints(received, combined);
        List<DispatchResult> again = dispatch(plans, check());
        List<CombineResult> combinedAgain = combine(combines);
        List<Long> after = fingerprints(again, combinedAgain);
        session.run(
                rank -> {
                    if (!before.get(rank).equals(after.get(rank))) {
                        throw new OracleMismatch(
                                "rank %s: the second run gave different bits from the first"
                                        .formatted(rank));
                    }
                });
    }

    private List<Long> fingerprints(List<DispatchResult> received, List<CombineResult> combined) {
        return session.ask(
                rank -> {
                    try (Downloads downloads = session.downloads(rank)) {
                        return 31 * Fingerprint.of(received.get(rank), downloads)
                                + Fingerprint.of(combined.get(rank), downloads);
                    }
                });
    }

    private CallOptions options(int rank) {
        CallOptions options = variant.has(ASYNC) ? CallOptions.async() : CallOptions.sync();
        return variant.has(PREVIOUS_EVENT)
                ? options.after(Buffer.capture(session.buffer(rank).communicationStream()))
                : options;
    }

    private <T> List<T> timed(RankTeam.Question<T> call) {
        List<T> answers = session.ask(call);
        nanos += session.team().slowestNanos();
        return answers;
    }
}
