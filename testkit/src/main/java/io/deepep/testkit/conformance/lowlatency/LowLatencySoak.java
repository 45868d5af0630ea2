package io.deepep.testkit.conformance.lowlatency;

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
import io.deepep.testkit.conformance.ExchangeRank;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import io.deepep.testkit.conformance.Soak;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;

/**
 * A {@link Soak} of low-latency calls of every kind in random order, with random routings, over one
 * buffer after the other, each with random limits. Runs when asked for by name.
 */
@BackendSuite
@Timeout(value = 1, unit = TimeUnit.DAYS)
public record LowLatencySoak(TestBackend backend) implements RankGroup {
    /** Bounds the time that an exchange takes. */
    private static final int MAX_OUTPUT_ELEMENTS = 1 << 22;

    /** Of the buffer that comes with a case, which stays open beside the others. */
    @Override
    public void limit(Buffer.Builder builder) {
        builder.lowLatency(new LowLatencyLimits(1, 128, 1, 720));
    }

    @Soak.Groups
    public void mixedCalls(RankContext context) {
        int numRanks = context.topology().numRanks();
        Soak.run(
                (random, exchanges) -> {
                    LowLatencyLimits limits = limits(random, numRanks);
                    RankGroup group = builder -> builder.lowLatency(limits);
                    try (Buffer buffer = context.builder(group).open()) {
                        RankContext own = context.with(buffer);
                        exchanges.forEach(drawn -> exchange(own, drawn));
                    }
                });
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
                case 0 -> Soak.badRouting(first);
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
        RoutingSpec spec =
                Soak.routing(
                        new SplittableRandom(~seed),
                        context.topology().numRanks(),
                        limits.maxTokens(),
                        limits.numExperts(),
                        limits.maxTopk());
        return LowLatencyWorld.of(spec, limits);
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
