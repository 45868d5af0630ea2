package io.deepep.testkit.conformance.mutation;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.normal.NormalMisuses;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Plans with seeded damage, made by rank 1 while the others make good ones. Whatever it is, it is
 * refused before anything starts (then rank 1 makes the good call, and all compare what comes), or
 * all ranks get the same kind of error, or it runs; afterwards a round trip is right. {@code
 * -Ddeepep.mutations} says how many the long test makes, {@code -Ddeepep.seed} where it begins.
 */
@BackendSuite
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public record MutatedRequestConformance(TestBackend backend) {
    private static final int TOKENS = 10;
    private static final int HIDDEN = 128;
    private static final LowLatencyFormat FORMAT = LowLatencyFormat.FP8;
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(TOKENS, HIDDEN, 4, 16);

    /** Damaged plans of a short test; each takes an emulated GPU some tenths of a second. */
    private int few() {
        return backend.kind() == Device.Kind.HOST ? 200 : 40;
    }

    @Cases({"1, 2", "2, 1"})
    public void fewDamagedRequests(int nodes, int ranksPerNode) {
        run(Ranks.topology(nodes, ranksPerNode), few(), 1);
    }

    @Test
    @Tag("hour")
    @Timeout(value = 1, unit = TimeUnit.DAYS)
    public void manyDamagedRequests() {
        int number = Integer.getInteger("deepep.mutations", 100_000);
        long seed = Long.getLong("deepep.seed", 1_000_000);
        run(Ranks.four(backend()), number, seed);
    }

    private void run(EpTopology topology, int number, long seed) {
        RoutingSpec spec = RoutingSpec.of(topology.numRanks(), TOKENS, 16, 4).withSeed(9);
        NormalWorld normal = NormalWorld.bf16(spec, HIDDEN);
        LowLatencyWorld lowLatency = LowLatencyWorld.of(spec, LIMITS);
        AtomicIntegerArray refused = new AtomicIntegerArray(number);
        AtomicInteger numRefused = new AtomicInteger();
        Ranks.run(
                backend(),
                topology,
                b -> b.normal(NormalMisuses.LIMITS).lowLatency(LIMITS),
                context -> {
                    Party party = new Party(context, normal, lowLatency, refused);
                    for (int step = 0; step < number; step++) {
                        party.take(step, seed + step);
                    }
                    numRefused.addAndGet(party.numRefused);
                });
        assertThat(numRefused.get())
                .as("of %s damaged plans", number)
                .isBetween(number / 4, number - 1);
    }

    /** One rank. */
    private static final class Party {
        private final RankContext context;
        private final NormalRank normal;
        private final LowLatencyRank lowLatency;
        private final AtomicIntegerArray refused;
        private final MemorySegment untouchable = TensorMutations.ofAnotherThread();
        private RequestMutations damage;
        private int numRefused;

        Party(
                RankContext context,
                NormalWorld world,
                LowLatencyWorld lowLatencyWorld,
                AtomicIntegerArray refused) {
            this.context = context;
            this.normal = new NormalRank(context, world);
            this.lowLatency = new LowLatencyRank(context, lowLatencyWorld);
            this.refused = refused;
        }

        void take(int step, long seed) {
            SplittableRandom random = new SplittableRandom(seed);
            damage = new RequestMutations(context, untouchable, random.split());
            int kind = random.nextInt(4);
            CallOptions options = random.nextInt(4) == 0 ? CallOptions.async() : CallOptions.sync();
            try {
                switch (kind) {
                    case 0 -> dispatch(step, options);
                    case 1 -> combine(step, options);
                    case 2 -> lowLatencyDispatch(step, options);
                    default -> lowLatencyCombine(step, options);
                }
                if (kind < 2) {
                    normal.roundTrip();
                } else {
                    lowLatency.roundTrip(FORMAT);
                }
            } catch (Throwable failure) {
                String what = context.isCulprit() ? damage.toString() : "good calls";
                throw new AssertionError("seed " + seed + ", " + what, failure);
            }
        }

        private Buffer buffer() {
            return context.buffer();
        }

        private void dispatch(int step, CallOptions options) {
            DispatchHandle before = normal.dispatch().handle();
            meet(
                    step,
                    () -> normal.call(damage.dispatch(normal, before), options),
                    () -> {
                        var result = buffer().dispatch(normal.plan().build());
                        return () -> normal.verify(result);
                    });
        }

        private void combine(int step, CallOptions options) {
            DispatchHandle handle = normal.dispatch().handle();
            CombinePlan plan = CombinePlan.builder(normal.outputs(), handle).build();
            meet(
                    step,
                    () -> normal.call(damage.combine(normal, handle), options),
                    () -> {
                        var result = buffer().combine(plan);
                        return () -> normal.verify(result);
                    });
        }

        private void lowLatencyDispatch(int step, CallOptions options) {
            meet(
                    step,
                    () -> lowLatency.call(damage.dispatch(lowLatency), options),
                    () -> {
                        var result = buffer().lowLatencyDispatch(lowLatency.plan(FORMAT).build());
                        return () -> lowLatency.verify(result, FORMAT);
                    });
        }

        private void lowLatencyCombine(int step, CallOptions options) {
            LowLatencyHandle handle = lowLatency.dispatch(FORMAT).handle();
            meet(
                    step,
                    () -> lowLatency.call(damage.combine(lowLatency, handle), options),
                    () -> {
                        var result = buffer().lowLatencyCombine(lowLatency.home(handle).build());
                        return () -> lowLatency.verify(result);
                    });
        }

        /**
         * The culprit makes the damaged call, the others the good one; if it is refused, so does
         * the culprit.
         *
         * @param good gives the comparison of its result
         */
        private void meet(int step, Runnable damaged, Supplier<Runnable> good) {
            Runnable comparison;
            try {
                if (context.isCulprit() && !isRefused(step, damaged)) {
                    return;
                }
                comparison = good.get();
            } catch (RoutingException | CapacityExceededException | RankMismatchException all) {
                assertThat(refused.get(step)).as("a refused call has no effect").isZero();
                return;
            }
            if (refused.get(step) != 0) {
                comparison.run();
            }
        }

        /** Makes the damaged call; returns whether it was refused before anything started. */
        private boolean isRefused(int step, Runnable damaged) {
            try {
                damaged.run();
                return false;
            } catch (IllegalArgumentException | NullPointerException clear) {
                assertThat(clear).hasMessageMatching("(?s).*\\w.*");
                refused.set(step, 1);
                numRefused++;
                return true;
            }
        }
    }
}
