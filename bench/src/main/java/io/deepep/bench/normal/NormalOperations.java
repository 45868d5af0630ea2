package io.deepep.bench.normal;

import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Session;
import io.deepep.bench.run.TensorPair;
import io.deepep.testkit.oracle.NormalCombineOracle;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Makes the operations of normal mode that are measured. Results are the same bits whatever the
 * number of multiprocessors, so those that the oracle has accepted once are accepted again; any
 * other goes to the oracle.
 */
final class NormalOperations {
    private record Key(String operation, DType dtype, int rank) {}

    private final Session session;
    private final TokenPool pool;
    private final NormalWorkload workload;
    private final Map<Key, Long> accepted = new ConcurrentHashMap<>();

    NormalOperations(NormalSetup setup) {
        session = setup.session();
        pool = setup.pool();
        workload = setup.workload();
    }

    private DispatchPlan plan(int rank, DType dtype, int sms) {
        return bare(rank, dtype)
                .topk(
                        workload.topkIdx(rank),
                        workload.topkWeights(rank),
                        workload.routing().numExperts())
                .config(config(sms))
                .build();
    }

    private DispatchPlan.Tokens bare(int rank, DType dtype) {
        Tokens tokens = workload.tokens(rank, dtype);
        return DispatchPlan.builder(tokens.x(), tokens.scales());
    }

    private Config config(int sms) {
        return session.job().dispatchConfig().withNumSms(sms);
    }

    /** Dispatch with top-k. */
    NormalOperation dispatch(DType dtype, int sms) {
        List<DispatchPlan> plans = session.team().ask(rank -> plan(rank, dtype, sms));
        return new Dispatch("dispatch", dtype, sms, plans, workload.check(dtype));
    }

    /** Dispatch with the routing of an earlier one. Dispatches once, for the handles. */
    NormalOperation cachedDispatch(DType dtype, int sms) {
        List<DispatchPlan> plans =
                session.team()
                        .ask(
                                rank ->
                                        bare(rank, dtype)
                                                .cached(received(rank, dtype, sms).handle())
                                                .config(config(sms))
                                                .build());
        return new Dispatch(
                "dispatch-cached", dtype, sms, plans, workload.check(dtype).withoutTopk());
    }

    private DispatchResult received(int rank, DType dtype, int sms) {
        return session.buffer(rank).dispatch(plan(rank, dtype, sms));
    }

    /** Combine of BF16 rows. Dispatches once, for the handles. */
    NormalOperation combine(CombineSource input, int sms) {
        List<DispatchResult> received = session.team().ask(rank -> received(rank, DType.BF16, sms));
        List<TensorPair> outputs =
                session.team().ask(rank -> pool.outputs(rank, received.get(rank).numRecvTokens()));
        List<CombinePlan> plans =
                session.team()
                        .ask(
                                rank ->
                                        CombinePlan.builder(
                                                        place(rank, input, received, outputs),
                                                        received.get(rank).handle())
                                                .config(
                                                        session.job()
                                                                .combineConfig()
                                                                .withNumSms(sms))
                                                .build());
        return new Combine(
                input.operation(),
                sms,
                plans,
                session.gather(session.team().ask(rank -> outputs.get(rank).host())));
    }

    private Tensor place(
            int rank,
            CombineSource input,
            List<DispatchResult> received,
            List<TensorPair> outputs) {
        Tensor own = outputs.get(rank).device();
        return switch (input) {
            case ELSEWHERE -> own;
            case PLAIN_MEMORY -> pool.plainOutputs(rank, received.get(rank).numRecvTokens());
            case BUFFER -> {
                Tensor target = session.buffer(rank).getCombineBuffer(received.get(rank).handle());
                session.memory(rank).copyRows(own, target, received.get(rank).numRecvTokens());
                yield target;
            }
        };
    }

    private void accept(NormalOperation operation, int rank, long bits, Runnable oracle) {
        Key key = new Key(operation.name(), operation.dtype(), rank);
        Long known = accepted.get(key);
        if (known == null || known != bits) {
            oracle.run();
            accepted.put(key, bits);
        }
    }

    private final class Dispatch extends NormalOperation {
        private final List<DispatchPlan> plans;
        private final DispatchResult[] results;
        private final NormalDispatchCheck check;

        Dispatch(
                String name,
                DType dtype,
                int sms,
                List<DispatchPlan> plans,
                NormalDispatchCheck check) {
            super(name, dtype, sms);
            this.plans = plans;
            this.results = new DispatchResult[plans.size()];
            this.check = check;
        }

        @Override
        boolean pushes() {
            return true;
        }

        @Override
        public Event call(int rank, CallOptions options) {
            results[rank] = session.buffer(rank).dispatch(plans.get(rank), options);
            return results[rank].event();
        }

        @Override
        void verify(int rank) {
            try (Downloads downloads = session.downloads(rank)) {
                accept(
                        this,
                        rank,
                        Fingerprint.of(results[rank], downloads),
                        () -> check.check(rank, results[rank], downloads));
            }
        }
    }

    private final class Combine extends NormalOperation {
        private final List<CombinePlan> plans;
        private final CombineResult[] results;
        private final List<Tensor> outputs;

        Combine(String name, int sms, List<CombinePlan> plans, List<Tensor> outputs) {
            super(name, DType.BF16, sms);
            this.plans = plans;
            this.results = new CombineResult[plans.size()];
            this.outputs = outputs;
        }

        @Override
        boolean pushes() {
            return false;
        }

        @Override
        public Event call(int rank, CallOptions options) {
            results[rank] = session.buffer(rank).combine(plans.get(rank), options);
            return results[rank].event();
        }

        @Override
        void verify(int rank) {
            try (Downloads downloads = session.downloads(rank)) {
                accept(
                        this,
                        rank,
                        Fingerprint.of(results[rank], downloads),
                        () -> checkAgainstOracle(rank, downloads));
            }
        }

        private void checkAgainstOracle(int rank, Downloads downloads) {
            int nodeSize = session.job().topology().numNvlRanks();
            NormalCombineOracle.of(workload.oracle(), nodeSize)
                    .check(rank, outputs, List.of(), downloads.apply(results[rank].x()));
        }
    }
}
