package io.deepep.bench.lowlatency;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.bench.cuda.SoakKernel;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.Session;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.HostTensors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Dispatches and combines one after the other without the host looking at them: random numbers of
 * tokens, random routings, all formats, every row and sum compared on the GPU.
 */
public final class LowLatencySoak {
    /** Numbers of tokens that plans are prepared for. */
    private static final int[] TOKENS = {0, 1, 2, 5, 8, 17, 32};

    private static final int LOOK_EVERY = 1000;

    /**
     * Ranks that are threads of one GPU share its queue of launches. A rank that fills it holds up
     * the launches that it waits for itself.
     */
    private static final int LOOK_EVERY_ON_SHARED_GPUS = 8;

    private LowLatencySoak() {}

    /**
     * Makes {@code pairs} exchanges on the job's GPUs, with its numbers of ranks, experts and
     * selections, at most 32 tokens of its hidden size.
     *
     * @param ranksOfJob where they run; closed when this returns
     * @param pairsOfAMask after how many exchanges a rank is masked, and after as many comes back;
     *     {@code Long.MAX_VALUE}, if never
     * @throws io.deepep.bench.run.RankFailure if anything was wrong on a rank
     */
    public static void run(
            Job job, RankSource ranksOfJob, long pairs, long seed, long pairsOfAMask) {
        LowLatencyLimits limits =
                new LowLatencyLimits(
                        TOKENS[TOKENS.length - 1],
                        job.hidden(),
                        job.routing().numTopk(),
                        job.routing().numExperts());
        try (Session session =
                Session.open(job, ranksOfJob, builder -> builder.lowLatency(limits))) {
            List<Rank> ranks = session.team().ask(rank -> new Rank(session, rank, limits));
            session.team().run(rank -> ranks.get(rank).prepareAll());
            session.team().run(rank -> ranks.get(rank).run(pairs, seed, pairsOfAMask));
            session.team().run(rank -> ranks.get(rank).kernel.close());
        }
    }

    /** One rank's plans, by number of tokens and format. */
    private static final class Rank {
        private final int rank;
        private final int numRanks;
        private final Buffer buffer;
        private final LowLatencyLimits limits;
        private final Tensor topkIdx;
        private final Tensor topkWeights;
        private final List<Map<LowLatencyFormat, LowLatencyDispatchPlan>> dispatches =
                new ArrayList<>();
        private final IdentityHashMap<LowLatencyHandle, LowLatencyCombinePlan> combines =
                new IdentityHashMap<>();
        private final SoakKernel kernel;
        private final int[] numTokens;
        private final int lookEvery;

        Rank(Session session, int rank, LowLatencyLimits limits) {
            this.rank = rank;
            this.numRanks = session.job().numRanks();
            this.buffer = session.buffer(rank);
            this.limits = limits;
            this.numTokens = new int[numRanks];
            this.lookEvery =
                    session.job().placement().ranksPerGpu(numRanks) > 1
                            ? LOOK_EVERY_ON_SHARED_GPUS
                            : LOOK_EVERY;
            Tensor x = zeros(session, DType.BF16, limits.hidden());
            topkIdx = zeros(session, DType.I64, limits.maxTopk());
            topkWeights = zeros(session, DType.F32, limits.maxTopk());
            CudaStream stream = (CudaStream) buffer.communicationStream();
            kernel = new SoakKernel(stream, rank, numRanks, limits, x, topkIdx, topkWeights);
            for (int tokens : TOKENS) {
                Map<LowLatencyFormat, LowLatencyDispatchPlan> byFormat =
                        new EnumMap<>(LowLatencyFormat.class);
                for (LowLatencyFormat format : LowLatencyFormat.values()) {
                    byFormat.put(
                            format,
                            LowLatencyDispatchPlan.builder(
                                            x.slice(0, 0, tokens), topkIdx.slice(0, 0, tokens))
                                    .format(format)
                                    .build());
                }
                dispatches.add(byFormat);
            }
        }

        private Tensor zeros(Session session, DType dtype, long columns) {
            return session.memory(rank)
                    .upload(HostTensors.allocate(dtype, limits.maxTokens(), columns));
        }

        /** Each plan twice, because results have two places. */
        void prepareAll() {
            Arrays.fill(numTokens, limits.maxTokens());
            kernel.prepare(0, 0, numTokens);
            for (int i = 0; i < TOKENS.length; i++) {
                for (LowLatencyFormat format : LowLatencyFormat.values()) {
                    for (int bank = 0; bank < 2; bank++) {
                        exchange(i, format, CallOptions.sync());
                    }
                }
            }
            kernel.requireNoErrors();
        }

        private void exchange(int tokensIdx, LowLatencyFormat format, CallOptions options) {
            LowLatencyDispatchResult received =
                    buffer.lowLatencyDispatch(dispatches.get(tokensIdx).get(format), options);
            Tensor outputs = buffer.getLowLatencyCombineBuffer(received.handle());
            if (options.asyncFinish()) {
                kernel.checkDispatch(received, format, outputs);
            }
            LowLatencyCombinePlan combine = combines.get(received.handle());
            if (combine == null) {
                combine = combineOf(received.handle(), TOKENS[tokensIdx], outputs);
                combines.put(received.handle(), combine);
            }
            LowLatencyCombineResult home = buffer.lowLatencyCombine(combine, options);
            if (options.asyncFinish()) {
                kernel.checkCombine(home.x());
            }
        }

        private LowLatencyCombinePlan combineOf(
                LowLatencyHandle handle, int tokens, Tensor outputs) {
            return LowLatencyCombinePlan.builder(
                            outputs,
                            topkIdx.slice(0, 0, tokens),
                            topkWeights.slice(0, 0, tokens),
                            handle)
                    .build();
        }

        /**
         * All ranks draw the same. In every second turn one of them is masked and waits; after it,
         * it comes back.
         */
        void run(long pairs, long seed, long pairsOfAMask) {
            SplittableRandom random = new SplittableRandom(seed);
            long first = 0;
            for (long turn = 0; first < pairs; turn++) {
                long last = first + Math.min(pairsOfAMask, pairs - first);
                int masked = turn % 2 == 0 ? -1 : random.nextInt(numRanks);
                if (masked >= 0 && masked != rank) {
                    buffer.updateMask(masked, true);
                }
                turn(first, last, random, masked);
                if (masked >= 0) {
                    buffer.rejoin();
                    combines.clear();
                }
                first = last;
            }
        }

        private void turn(long first, long last, SplittableRandom random, int masked) {
            LowLatencyFormat[] formats = LowLatencyFormat.values();
            for (long pair = first; pair < last; pair++) {
                int own = 0;
                for (int each = 0; each < numRanks; each++) {
                    int idx = random.nextInt(TOKENS.length);
                    numTokens[each] = each == masked ? -1 : TOKENS[idx];
                    own = each == rank ? idx : own;
                }
                LowLatencyFormat format = formats[random.nextInt(formats.length)];
                long drawn = random.nextLong();
                if (rank == masked) {
                    continue;
                }
                kernel.prepare(pair, drawn, numTokens);
                exchange(own, format, CallOptions.async());
                if (pair % lookEvery == lookEvery - 1) {
                    kernel.requireNoErrors();
                }
            }
            kernel.requireNoErrors();
        }
    }
}
