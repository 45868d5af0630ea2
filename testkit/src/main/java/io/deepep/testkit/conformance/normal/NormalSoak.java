package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.LayoutCheck;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/**
 * Normal-mode calls of every kind in random order, with random shapes and routings, over two
 * buffers of one group. Runs when asked for by name. {@code -Ddeepep.soak=1000} makes a thousand
 * exchanges for each group, 100 if not given; they are those of {@code -Ddeepep.soak.seed}, 1 if
 * not given.
 */
@BackendSuite
@Timeout(value = 1, unit = TimeUnit.DAYS)
public record NormalSoak(TestBackend backend) implements RankGroup {
    private static final NormalLimits LIMITS = NormalLimits.of(96, 1024, 8, 64);
    private static final int MAX_PENDING = 3;

    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(LIMITS);
    }

    @Tag("manyCalls")
    @Cases({"1, 1", "1, 2", "1, 3", "1, 4", "1, 8", "2, 2", "2, 4"})
    public void mixedCalls(RankContext context) {
        int iterations = Integer.getInteger("deepep.soak", 100);
        long seed = Long.getLong("deepep.soak.seed", 1);
        int numRanks = context.topology().numRanks();
        try (Buffer other = context.builder(this).open()) {
            List<RankContext> contexts = List.of(context, context.with(other));
            Exchanges exchanges = new Exchanges();
            for (int i = 0; i < iterations; i++) {
                long drawn = seed << 32 | i;
                SplittableRandom random = new SplittableRandom(drawn);
                NormalWorld world = context.shared(i, _ -> world(LIMITS, numRanks, ~drawn));
                context.common().remove(i - 10 * MAX_PENDING);
                exchanges.run(contexts.get(random.nextInt(2)), world, random, "exchange " + i);
            }
            exchanges.settle(0);
        }
    }

    /** An exchange of a random shape and routing. */
    static NormalWorld world(NormalLimits limits, int numRanks, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int experts = numRanks * random.nextInt(1, limits.maxExperts() / numRanks + 1);
        int topk = random.nextInt(1, Math.min(limits.maxTopk(), experts) + 1);
        boolean fp8 = random.nextBoolean();
        int unit = fp8 ? 128 : 8;
        RoutingSpec spec =
                RoutingSpec.of(numRanks, random.nextInt(limits.maxTokens() + 1), experts, topk)
                        .withMaskedShare(random.nextInt(4) == 0 ? 0.4 : 0)
                        .withDuplicateShare(random.nextInt(4) == 0 ? 0.4 : 0)
                        .withVaryingTokens(random.nextBoolean())
                        .withIdleRanks(numRanks > 1 && random.nextInt(4) == 0 ? 1 : 0)
                        .withSeed(random.nextLong());
        int hidden = unit * random.nextInt(1, limits.hidden() / unit + 1);
        return NormalWorld.of(spec, hidden, fp8 ? DType.FP8_E4M3 : DType.BF16);
    }

    /** One rank's calls; all ranks draw the same. */
    private static final class Exchanges {
        private final ArrayDeque<Runnable> pending = new ArrayDeque<>();

        /** Looks at results until at most {@code left} are still to be looked at. */
        void settle(int left) {
            while (pending.size() > left) {
                pending.removeFirst().run();
            }
        }

        void run(RankContext context, NormalWorld world, SplittableRandom random, String name) {
            try {
                switch (random.nextInt(8)) {
                    case 0 -> badRouting(context, world);
                    case 1 -> layouts(context, world);
                    case 2 -> cached(context, world);
                    case 3, 4 -> inBackground(context, world, random);
                    default -> atOnce(context, world, random);
                }
            } catch (RuntimeException | Error e) {
                throw new AssertionError(name + ": " + e, e);
            }
        }

        private static void badRouting(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            if (world.routing().numRanks() <= CULPRIT || world.routing().numTokens(CULPRIT) == 0) {
                rank.roundTrip();
                return;
            }
            int numExperts = world.routing().numExperts();
            Tensor idx = context.spoiled(rank.topkIdx(), numExperts, 0, 0);
            DispatchPlan plan = rank.bare().topk(idx, null, numExperts).build();
            requireRouting(() -> rank.call(plan), "topkIdx");
        }

        private static void layouts(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            DispatchLayout layout =
                    context.buffer()
                            .getDispatchLayout(rank.topkIdx(), world.routing().numExperts());
            LayoutCheck.check(world.oracle(), context.topology(), layout, context::download);
            NormalDispatchCheck bare = world.check().withoutTopk();
            rank.roundTrip(rank.bare().layout(layout), bare);
            rank.dispatch(rank.plan().expectLayout(layout));
        }

        private static void cached(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            DispatchResult first = rank.dispatch();
            DispatchPlan plan = rank.bare().cached(first.handle()).build();
            NormalRank again = rank.expecting(rank.check().withoutTopk());
            again.combine(again.verify(context.buffer().dispatch(plan)).handle());
        }

        private static void atOnce(
                RankContext context, NormalWorld world, SplittableRandom random) {
            Form form = Form.draw(world, random);
            NormalRank rank = new NormalRank(context, world).expecting(form.check());
            DispatchPlan plan = form.apply(rank.plan()).build();
            CallOptions options = random.nextBoolean() ? CallOptions.async() : CallOptions.sync();
            for (int repeat = random.nextInt(1, 3); repeat > 0; repeat--) {
                DispatchResult result = context.buffer().dispatch(plan, options);
                rank.verify(result);
                combine(rank, world, form, result, options, random).run();
            }
        }

        /** Results are looked at only after other calls. */
        private void inBackground(RankContext context, NormalWorld world, SplittableRandom random) {
            Form form = Form.draw(world, random);
            NormalRank rank = new NormalRank(context, world).expecting(form.check());
            DispatchPlan plan = form.apply(rank.plan()).receive(DispatchPlan.Receive.COPY).build();
            DispatchResult result = context.buffer().dispatch(plan, CallOptions.async());
            CallOptions after = CallOptions.async().after(result.event());
            Runnable home = combine(rank, world, form, result, after, random);
            pending.addLast(() -> rank.verify(result));
            pending.addLast(home);
            settle(random.nextInt(MAX_PENDING + 1));
        }

        /** Combines; what is returned looks at the result. */
        private static Runnable combine(
                NormalRank rank,
                NormalWorld world,
                Form form,
                DispatchResult result,
                CallOptions options,
                SplittableRandom random) {
            RankContext context = rank.context();
            CombinePlan.Builder plan = rank.home(result.handle()).config(form.config());
            List<Tensor> biases = new ArrayList<>();
            for (int i = random.nextInt(3); i > 0; i--) {
                biases.add(world.bias(context.rank(), i));
            }
            switch (biases.size()) {
                case 1 -> plan.bias(context.upload(biases.get(0)));
                case 2 -> plan.bias(context.upload(biases.get(0)), context.upload(biases.get(1)));
                default -> {}
            }
            boolean weights = random.nextBoolean();
            List<Tensor> given = weights ? world.weights(rank.check()) : List.of();
            if (weights) {
                plan.topkWeights(context.upload(given.get(context.rank())));
            }
            CombineResult home = context.buffer().combine(plan.build(), options);
            return () -> {
                rank.verify(home, biases.toArray(Tensor[]::new));
                if (weights) {
                    rank.verifyWeights(home, given);
                }
            };
        }
    }

    /** How a dispatch is asked for, and what comes of it. */
    private record Form(
            boolean expanded, int alignment, int worst, Config config, NormalDispatchCheck check) {
        static Form draw(NormalWorld world, SplittableRandom random) {
            boolean expanded = random.nextInt(3) == 0;
            int alignment = 1 << random.nextInt(5);
            int numRanks = world.routing().numRanks();
            int all = LIMITS.recvCapacity(numRanks);
            int most = expanded ? all * world.routing().numTopk() + alignment * 64 : all;
            int worst = random.nextInt(3) == 0 ? most : 0;
            NormalDispatchCheck check =
                    expanded ? world.check().expanded(alignment) : world.check().aligned(alignment);
            Config config =
                    random.nextBoolean()
                            ? null
                            : Config.recommended(numRanks).withNumSms(2 * random.nextInt(1, 6));
            return new Form(
                    expanded, alignment, worst, config, worst > 0 ? check.worstCase(worst) : check);
        }

        DispatchPlan.Builder apply(DispatchPlan.Builder plan) {
            return plan.expanded(expanded)
                    .expertAlignment(alignment)
                    .numWorstTokens(worst)
                    .config(config);
        }
    }
}
