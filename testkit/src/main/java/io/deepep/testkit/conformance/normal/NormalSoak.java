package io.deepep.testkit.conformance.normal;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Soak;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;

/**
 * A {@link Soak} of normal-mode calls of every kind in random order, with random shapes and
 * routings, over two buffers of one group at a time, which have random limits themselves. Runs when
 * asked for by name.
 */
@BackendSuite
@Timeout(value = 1, unit = TimeUnit.DAYS)
public record NormalSoak(TestBackend backend) implements RankGroup {
    private static final int MAX_PENDING = 3;

    /** Of all ranks' tokens; bounds the time that an exchange takes. */
    private static final int MAX_ELEMENTS = 1 << 19;

    /** Of the buffer that comes with a case, which stays open beside the others. */
    @Override
    public void limit(Buffer.Builder builder) {
        builder.normal(NormalLimits.of(1, 8, 1, 32));
    }

    @Soak.Groups
    public void mixedCalls(RankContext context) {
        int numRanks = context.topology().numRanks();
        Soak.run(
                (random, exchanges) -> {
                    RankGroup limits = Limits.draw(random, numRanks);
                    RankGroup others = Limits.draw(random, numRanks);
                    try (Buffer buffer = context.builder(limits).open();
                            Buffer other = context.builder(others).open()) {
                        List<RankContext> contexts =
                                List.of(context.with(buffer), context.with(other));
                        Exchanges calls = new Exchanges();
                        exchanges.forEach(drawn -> calls.run(contexts, drawn));
                        calls.settle(0);
                    }
                });
    }

    /** What a buffer is opened with. */
    private record Limits(NormalLimits limits, Config dispatch, Config combine)
            implements RankGroup {
        /** Long rows, many tokens, or neither. */
        static Limits draw(SplittableRandom random, int numRanks) {
            int[] mostUnits = {16, 32, 128, 128, 1280};
            int hidden = 8 * random.nextInt(1, mostUnits[random.nextInt(mostUnits.length)] + 1);
            int tokens = Math.clamp(MAX_ELEMENTS / (hidden * numRanks), 1, 1000);
            NormalLimits limits =
                    NormalLimits.of(
                            random.nextInt(1, tokens + 1),
                            hidden,
                            random.nextInt(1, random.nextBoolean() ? 9 : 33),
                            numRanks * random.nextInt(1, 25));
            return new Limits(limits, config(random, numRanks), config(random, numRanks));
        }

        /** Ranks that share a GPU can make calls of both buffers at once. */
        private static Config config(SplittableRandom random, int numRanks) {
            int sms = 2 * random.nextInt(1, Math.clamp(27 / numRanks, 1, 6) + 1);
            int sent = random.nextInt(1, 9);
            return new Config(sms, sent, random.nextInt(2 * sent, 40));
        }

        @Override
        public void limit(Buffer.Builder builder) {
            builder.normal(limits).dispatchConfig(dispatch).combineConfig(combine);
        }
    }

    /**
     * An exchange of a random shape and routing, and another of the same tokens with rows of
     * another size.
     */
    record Worlds(NormalWorld world, NormalWorld resized) {
        static Worlds of(NormalLimits limits, int numRanks, long seed) {
            SplittableRandom random = new SplittableRandom(seed);
            int experts = numRanks * random.nextInt(1, limits.maxExperts() / numRanks + 1);
            RoutingSpec spec =
                    Soak.routing(random, numRanks, limits.maxTokens(), experts, limits.maxTopk());
            boolean fp8 = limits.hidden() >= 128 && random.nextBoolean();
            DType dtype = fp8 ? DType.FP8_E4M3 : DType.BF16;
            NormalWorld world = NormalWorld.of(spec, hidden(limits, fp8, random), dtype);
            boolean inGroups = limits.hidden() >= 128 && random.nextBoolean();
            return new Worlds(
                    world, NormalWorld.of(spec, hidden(limits, inGroups, random), DType.BF16));
        }

        private static int hidden(NormalLimits limits, boolean inGroups, SplittableRandom random) {
            int unit = inGroups ? 128 : 8;
            return unit * random.nextInt(1, limits.hidden() / unit + 1);
        }
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

        /** One exchange over one of the buffers. */
        void run(List<RankContext> contexts, long drawn) {
            SplittableRandom random = new SplittableRandom(drawn);
            RankContext context = contexts.get(random.nextInt(contexts.size()));
            Worlds worlds = context.shared(drawn, _ -> worldsOf(context, ~drawn));
            NormalWorld world = worlds.world();
            context.common().remove(drawn - 10 * MAX_PENDING);
            try {
                switch (random.nextInt(8)) {
                    case 0 -> Soak.badRouting(new NormalRank(context, world));
                    case 1 -> layouts(context, world);
                    case 2 -> cached(context, world);
                    case 3, 4 -> inBackground(context, worlds, random);
                    default -> atOnce(context, worlds, random);
                }
            } catch (RuntimeException | Error e) {
                throw new AssertionError(
                        "exchange %s, hidden=%s, %s: %s"
                                .formatted(
                                        (int) drawn,
                                        world.hidden(),
                                        context.buffer().options().normal(),
                                        e),
                        e);
            }
        }

        private static Worlds worldsOf(RankContext context, long seed) {
            NormalLimits limits = context.buffer().options().normal();
            return Worlds.of(limits, context.topology().numRanks(), seed);
        }

        private static void layouts(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            DispatchLayout layout = rank.layout();
            NormalRank bare = rank.expecting(rank.check().withoutTopk());
            bare.roundTrip(rank.bare().layout(layout));
            rank.dispatch(rank.plan().expectLayout(layout));
        }

        private static void cached(RankContext context, NormalWorld world) {
            NormalRank rank = new NormalRank(context, world);
            DispatchResult first = rank.dispatch();
            DispatchPlan plan = rank.bare().cached(first.handle()).build();
            NormalRank again = rank.expecting(rank.check().withoutTopk());
            again.combine(again.verify(context.buffer().dispatch(plan)).handle());
        }

        private static void atOnce(RankContext context, Worlds worlds, SplittableRandom random) {
            NormalRank rank = inSomeForm(context, worlds.world(), random);
            Config config = config(context, random);
            DispatchPlan plan = rank.plan().config(config).build();
            CallOptions options = random.nextBoolean() ? CallOptions.async() : CallOptions.sync();
            for (int repeat = random.nextInt(1, 3); repeat > 0; repeat--) {
                DispatchResult result = context.buffer().dispatch(plan, options);
                rank.verify(result);
                NormalRank home = ofSomeSize(rank, worlds, random);
                combine(home, config, result, options, random).run();
            }
        }

        /** Results are looked at only after other calls. */
        private void inBackground(RankContext context, Worlds worlds, SplittableRandom random) {
            NormalRank rank = inSomeForm(context, worlds.world(), random);
            Config config = config(context, random);
            DispatchPlan plan =
                    rank.plan().config(config).receive(DispatchPlan.Receive.COPY).build();
            DispatchResult result = context.buffer().dispatch(plan, CallOptions.async());
            CallOptions after = CallOptions.async().after(result.event());
            NormalRank sized = ofSomeSize(rank, worlds, random);
            Runnable home = combine(sized, config, result, after, random);
            pending.addLast(() -> rank.verify(result));
            pending.addLast(home);
            settle(random.nextInt(MAX_PENDING + 1));
        }

        /** Combines; what is returned looks at the result. */
        private static Runnable combine(
                NormalRank rank,
                Config config,
                DispatchResult result,
                CallOptions options,
                SplittableRandom random) {
            RankContext context = rank.context();
            NormalWorld world = rank.world();
            CombinePlan.Builder plan = home(rank, result, random).config(config);
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
            if (random.nextBoolean()) {
                int gap = 1 + context.rank() % 9;
                int numTokens = world.routing().numTokens(context.rank());
                plan.out(context.poisonedWithRowGap(gap, DType.BF16, numTokens, world.hidden()));
            }
            CombinePlan built = plan.build();
            CombineResult home = context.buffer().combine(built, options);
            return () -> {
                rank.verify(home, built, biases.toArray(Tensor[]::new));
                if (weights) {
                    rank.verifyWeights(home, given);
                }
            };
        }

        /** Each rank gives its rows in a form of its own; all agree on how they travel. */
        private static CombinePlan.Builder home(
                NormalRank rank, DispatchResult result, SplittableRandom random) {
            DispatchHandle handle = result.handle();
            boolean fp8 = random.nextInt(3) == 0 && rank.world().hidden() % 128 == 0;
            int how = (random.nextInt(3) + rank.context().rank()) % 3;
            boolean inPlace =
                    how == 2
                            && !rank.check().expanded()
                            && rank.world().hidden() == handle.hidden();
            if (inPlace) {
                // Only then has the combine before it left the region.
                result.event().synchronize();
            }
            if (!fp8) {
                return CombinePlan.builder(
                        inPlace ? rank.filledCombineBuffer(handle) : rows(rank, how), handle);
            }
            if (inPlace) {
                return NormalRank.home(rank.inBuffer(rank.fp8Outputs(), handle), handle);
            }
            return rank.check().expanded() || how == 0
                    ? rank.home(handle).format(CombineFormat.FP8)
                    : NormalRank.home(rank.upload(rank.fp8Outputs()), handle);
        }

        /** Elsewhere, packed or with gaps between them. */
        private static Tensor rows(NormalRank rank, int how) {
            return how == 0
                    ? rank.outputs()
                    : rank.context().upload(HostTensors.withRowGap(rank.hostOutputs(), 7 + how));
        }

        /** The rank's share, of tokens that come home with as many elements or with others. */
        private static NormalRank ofSomeSize(
                NormalRank rank, Worlds worlds, SplittableRandom random) {
            return random.nextInt(3) == 0 ? rank.of(worlds.resized()) : rank;
        }

        /** The rank's share of an exchange, in a form that all ranks draw. */
        private static NormalRank inSomeForm(
                RankContext context, NormalWorld world, SplittableRandom random) {
            boolean expanded = random.nextInt(3) == 0;
            int alignment = 1 << random.nextInt(5);
            NormalDispatchCheck check =
                    expanded ? world.check().expanded(alignment) : world.check().aligned(alignment);
            if (random.nextInt(3) == 0) {
                check = check.withoutWeights();
            }
            if (random.nextInt(3) == 0) {
                NormalLimits limits = context.buffer().options().normal();
                check = check.worstCase(enough(check, limits, random));
            }
            return new NormalRank(context, world).expecting(check);
        }

        /** Rows that no rank exceeds, and no more of them than a buffer may have. */
        private static int enough(
                NormalDispatchCheck check, NormalLimits limits, SplittableRandom random) {
            int numRanks = check.tokens().size();
            int rows = check.mostRows() + random.nextInt(40);
            return check.expanded() ? rows : Math.min(rows, limits.recvCapacity(numRanks));
        }

        /** As many multiprocessors as the buffer has room for, or fewer; null for its own. */
        private static Config config(RankContext context, SplittableRandom random) {
            BufferOptions options = context.buffer().options();
            Config most = options.dispatchConfig().covering(options.combineConfig());
            int numSms = 2 * random.nextInt(1, most.numChannels() + 1);
            boolean oneSuffices = !context.topology().isInternode();
            if (oneSuffices && random.nextInt(4) == 0) {
                numSms = 1;
            }
            return random.nextBoolean() ? null : most.withNumSms(numSms);
        }
    }
}
