package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.LowLatencyPlan;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/**
 * Low-latency calls of every kind in random order, with random routings, over one buffer after the
 * other, each with random limits. Runs when asked for by name, with the same properties as {@link
 * io.deepep.testkit.conformance.normal.NormalSoak}.
 */
@BackendSuite
@Timeout(value = 1, unit = TimeUnit.DAYS)
public record LowLatencySoak(TestBackend backend) implements RankGroup {
    private static final int EXCHANGES_PER_BUFFER = 20;

    /** Bounds the time that an exchange takes. */
    private static final int MAX_OUTPUT_ELEMENTS = 1 << 22;

    /** Of the buffer that comes with a case, which stays open beside the others. */
    @Override
    public void limit(Buffer.Builder builder) {
        builder.lowLatency(new LowLatencyLimits(1, 128, 1, 720));
    }

    @Tag("manyCalls")
    @Cases({
        "1, 1", "1, 2", "1, 3", "1, 4", "1, 5", "1, 8", "1, 9", "2, 1", "2, 2", "2, 4", "3, 3",
        "2, 9"
    })
    public void mixedCalls(RankContext context) {
        int iterations = Integer.getInteger("deepep.soak", 100);
        long seed = Long.getLong("deepep.soak.seed", 1);
        int numRanks = context.topology().numRanks();
        for (int first = 0; first < iterations; first += EXCHANGES_PER_BUFFER) {
            SplittableRandom random = new SplittableRandom(~(seed << 32 | first));
            LowLatencyLimits limits = limits(random, numRanks);
            try (Buffer buffer = context.builder(builder -> builder.lowLatency(limits)).open()) {
                RankContext own = context.with(buffer);
                for (int i = first; i < Math.min(iterations, first + EXCHANGES_PER_BUFFER); i++) {
                    exchange(own, seed << 32 | i);
                }
            }
        }
    }

    private static LowLatencyLimits limits(SplittableRandom random, int numRanks) {
        int hidden = 128 * random.nextInt(1, random.nextInt(4) == 0 ? 73 : 9);
        int experts = random.nextInt(1, random.nextBoolean() ? 5 : 25);
        int most = Math.clamp(MAX_OUTPUT_ELEMENTS / (hidden * experts * numRanks), 1, 200);
        return new LowLatencyLimits(
                random.nextInt(1, most + 1),
                hidden,
                random.nextInt(1, random.nextBoolean() ? 9 : 33),
                experts * numRanks);
    }

    /** All ranks draw the same. */
    private static void exchange(RankContext context, long drawn) {
        SplittableRandom random = new SplittableRandom(drawn);
        LowLatencyRank first = rank(context, 2 * drawn);
        try {
            switch (random.nextInt(8)) {
                case 0 -> badRouting(first);
                case 1 -> twoInFlight(first, rank(context, 2 * drawn + 1), random);
                default -> pair(first, random);
            }
        } catch (RuntimeException | Error e) {
            throw new AssertionError(
                    "exchange %s, %s: %s"
                            .formatted((int) drawn, context.buffer().options().lowLatency(), e),
                    e);
        }
    }

    private static LowLatencyRank rank(RankContext context, long seed) {
        context.common().remove(seed - 8);
        LowLatencyWorld world = context.shared(seed, _ -> world(context, seed));
        return new LowLatencyRank(context, world);
    }

    private static LowLatencyWorld world(RankContext context, long seed) {
        LowLatencyLimits limits = context.buffer().options().lowLatency();
        SplittableRandom random = new SplittableRandom(~seed);
        int experts = limits.numExperts();
        int numRanks = context.topology().numRanks();
        int topk = random.nextInt(1, Math.min(limits.maxTopk(), experts) + 1);
        int tokens = random.nextInt(limits.maxTokens() + 1);
        Gate gate =
                switch (random.nextInt(8)) {
                    case 0 -> new Gate.Zipf(2);
                    case 1 -> new Gate.AllToOne(random.nextInt(experts));
                    default -> new Gate.Uniform();
                };
        return LowLatencyWorld.of(
                RoutingSpec.of(numRanks, tokens, experts, topk)
                        .withGate(gate)
                        .withMaskedShare(random.nextInt(4) == 0 ? 0.4 : 0)
                        .withDuplicateShare(random.nextInt(4) == 0 ? 0.4 : 0)
                        .withVaryingTokens(random.nextBoolean())
                        .withIdleRanks(numRanks > 1 && random.nextInt(4) == 0 ? 1 : 0)
                        .withSeed(random.nextLong()),
                limits);
    }

    private static void badRouting(LowLatencyRank rank) {
        RankContext context = rank.context();
        if (context.topology().numRanks() <= CULPRIT
                || rank.world().routing().numTokens(CULPRIT) == 0) {
            rank.roundTrip();
            return;
        }
        long expert = rank.world().routing().numExperts();
        Tensor idx = context.spoiled(rank.topkIdx(), expert, 0, 0);
        requireRouting(() -> rank.call(rank.planOf(idx)), "topkIdx");
    }

    /** Both are dispatched before either is received, and received before either is combined. */
    private static void twoInFlight(
            LowLatencyRank one, LowLatencyRank two, SplittableRandom random) {
        LowLatencyFormat format = anyOf(LowLatencyFormat.values(), random);
        LowLatencyDispatchResult ofOne = dispatch(one, format, random);
        LowLatencyDispatchResult ofTwo = dispatch(two, format, random);
        ExchangeRank.receive(ofOne.receiveHook());
        ExchangeRank.receive(ofTwo.receiveHook());
        one.verify(ofOne, format);
        two.verify(ofTwo, format);
        combine(one, ofOne.handle(), random);
        combine(two, ofTwo.handle(), random);
    }

    private static void pair(LowLatencyRank rank, SplittableRandom random) {
        LowLatencyFormat format = anyOf(LowLatencyFormat.values(), random);
        LowLatencyDispatchResult result = dispatch(rank, format, random);
        ExchangeRank.receive(result.receiveHook());
        boolean looksFirst = random.nextBoolean();
        if (looksFirst) {
            rank.verify(result, format);
        }
        for (int number = random.nextInt(3); number > 0; number--) {
            combine(rank, result.handle(), random);
        }
        rank.verify(result, format);
    }

    private static LowLatencyDispatchResult dispatch(
            LowLatencyRank rank, LowLatencyFormat format, SplittableRandom random) {
        LowLatencyDispatchPlan plan = options(rank.weighted(format), rank, random).build();
        return rank.context().buffer().lowLatencyDispatch(plan, callOptions(random));
    }

    private static void combine(
            LowLatencyRank rank, LowLatencyHandle handle, SplittableRandom random) {
        boolean preReduced = random.nextInt(3) == 0;
        CombineFormat format = anyOf(CombineFormat.values(), random);
        Tensor x = outputs(rank, handle, random);
        LowLatencyCombinePlan.Builder builder =
                preReduced
                        ? LowLatencyCombinePlan.preReduced(x, rank.topkIdx(), handle)
                        : rank.home(x, handle);
        LowLatencyCombinePlan plan = options(builder.format(format), rank, random).build();
        LowLatencyCombineResult home =
                rank.context().buffer().lowLatencyCombine(plan, callOptions(random));
        ExchangeRank.receive(home.receiveHook());
        rank.verify(home, plan);
    }

    /** Each rank has its outputs where it likes. */
    private static Tensor outputs(
            LowLatencyRank rank, LowLatencyHandle handle, SplittableRandom random) {
        RankContext context = rank.context();
        int gap = random.nextInt(1, 25);
        return switch ((random.nextInt(3) + context.rank()) % 3) {
            case 0 -> rank.filledCombineBuffer(handle);
            case 1 -> {
                Tensor host = rank.world().outputs().get(context.rank());
                yield context.upload(HostTensors.withRowGap(host, gap));
            }
            default -> rank.outputs();
        };
    }

    /** With a hook or without, on as many multiprocessors as the rank likes. */
    private static <B extends LowLatencyPlan.Builder<B>> B options(
            B plan, LowLatencyRank rank, SplittableRandom random) {
        int most = rank.context().topology().numRanks() > 9 ? 7 : 12;
        int sms = random.nextInt(most + 1) - rank.context().rank() % 3;
        return (sms > 0 ? plan.numSms(sms) : plan).receiveHook(random.nextBoolean());
    }

    private static CallOptions callOptions(SplittableRandom random) {
        return random.nextBoolean() ? CallOptions.async() : CallOptions.sync();
    }

    private static <T> T anyOf(T[] values, SplittableRandom random) {
        return values[random.nextInt(values.length)];
    }
}
