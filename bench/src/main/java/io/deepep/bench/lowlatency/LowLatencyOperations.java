package io.deepep.bench.lowlatency;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.run.Session;
import java.util.List;
import java.util.Locale;

/** Operations of low-latency mode with reused plans, as they are measured. */
final class LowLatencyOperations {
    private final Session session;
    private final Verifier verifier;
    private final LowLatencyWorkload workload;

    LowLatencyOperations(LowLatencySetup setup) {
        session = setup.session();
        verifier = setup.verifier();
        workload = setup.verifier().workload();
    }

    private List<LowLatencyDispatchPlan> plans(LowLatencyFormat format, boolean weighted, int sms) {
        return session.team()
                .ask(
                        rank ->
                                LowLatencyDispatchPlan.builder(
                                                workload.x(rank), workload.topkIdx(rank))
                                        .format(format)
                                        .topkWeights(weighted ? workload.topkWeights(rank) : null)
                                        .numSms(sms)
                                        .build());
    }

    LowLatencyOperation dispatch(LowLatencyFormat format, int sms) {
        return new Dispatch(format, sms);
    }

    /**
     * Combine of what experts computed. Dispatches once, for the handles; so it is to be measured
     * before the next dispatch is made.
     */
    LowLatencyOperation combine(boolean zeroCopy, CombineRows home, int sms) {
        return new Combine(zeroCopy, home, sms);
    }

    private static String nameOf(boolean zeroCopy, CombineRows home) {
        return switch (home) {
            case BF16 -> zeroCopy ? "ll-combine-zero-copy" : "ll-combine-staged";
            case LOGFMT -> "ll-combine-logfmt";
            case PRE_REDUCED -> "ll-combine-pre-reduced";
        };
    }

    private final class Dispatch extends LowLatencyOperation {
        private final LowLatencyFormat format;
        private final List<LowLatencyDispatchPlan> plans;
        private final LowLatencyDispatchResult[] latest =
                new LowLatencyDispatchResult[session.job().numRanks()];

        Dispatch(LowLatencyFormat format, int sms) {
            super("ll-dispatch", format.name().toLowerCase(Locale.ROOT), sms);
            this.format = format;
            this.plans = plans(format, false, sms);
        }

        @Override
        public Event call(int rank, CallOptions options) {
            latest[rank] = session.buffer(rank).lowLatencyDispatch(plans.get(rank), options);
            return latest[rank].event();
        }

        @Override
        OperationBytes total(LowLatencyBytes bytes) {
            return bytes.dispatch(format);
        }

        @Override
        long busiestLinkBytes(LowLatencyBytes bytes) {
            return bytes.busiestLinkRows(bytes::dispatchRows) * wireRowBytes(bytes);
        }

        @Override
        long wireRowBytes(LowLatencyBytes bytes) {
            return bytes.dispatchWireRowBytes(format);
        }

        @Override
        void verify(int rank) {
            verifier.dispatched(rank, format, latest[rank]);
        }
    }

    private final class Combine extends LowLatencyOperation {
        private final CombineRows home;
        private final List<LowLatencyCombinePlan> plans;
        private final LowLatencyCombineResult[] latest =
                new LowLatencyCombineResult[session.job().numRanks()];

        Combine(boolean zeroCopy, CombineRows home, int sms) {
            super(nameOf(zeroCopy, home), "bf16", sms);
            this.home = home;
            boolean weighted = home == CombineRows.PRE_REDUCED;
            List<LowLatencyDispatchPlan> dispatches =
                    LowLatencyOperations.this.plans(LowLatencyFormat.BF16, weighted, sms);
            plans = session.team().ask(rank -> plan(rank, dispatches.get(rank), zeroCopy));
        }

        private LowLatencyCombinePlan plan(
                int rank, LowLatencyDispatchPlan dispatch, boolean zeroCopy) {
            Buffer buffer = session.buffer(rank);
            LowLatencyDispatchResult received = buffer.lowLatencyDispatch(dispatch);
            Tensor input = workload.outputs(rank);
            if (zeroCopy) {
                input = buffer.getLowLatencyCombineBuffer(received.handle());
                workload.copyOutputs(rank, input);
            }
            return workload.combine(rank, input, received.handle(), home).numSms(sms()).build();
        }

        @Override
        public Event call(int rank, CallOptions options) {
            latest[rank] = session.buffer(rank).lowLatencyCombine(plans.get(rank), options);
            return latest[rank].event();
        }

        @Override
        OperationBytes total(LowLatencyBytes bytes) {
            return bytes.combine(home);
        }

        @Override
        long busiestLinkBytes(LowLatencyBytes bytes) {
            return bytes.busiestLinkRows(bytes.combineRows(home)) * wireRowBytes(bytes);
        }

        @Override
        long wireRowBytes(LowLatencyBytes bytes) {
            return bytes.combineRowBytes(home);
        }

        @Override
        void verify(int rank) {
            verifier.combined(rank, home, latest[rank].x());
        }
    }
}
