package io.deepep.testkit.conformance;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireRouting;

import io.deepep.Plan;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.SplittableRandom;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;

/**
 * Exchanges of random shapes, in both modes. {@code -Ddeepep.soak=1000} makes a thousand for each
 * group, 100 if not given; they are those of {@code -Ddeepep.soak.seed}, 1 if not given.
 */
public final class Soak {
    private static final int EXCHANGES_PER_BUFFER = 20;

    private Soak() {}

    /** A soak's groups. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Tag("manyCalls")
    @Cases({
        "1, 1", "1, 2", "1, 3", "1, 4", "1, 5", "1, 8", "1, 9", "2, 1", "2, 2", "2, 4", "3, 3",
        "2, 9"
    })
    public @interface Groups {}

    /**
     * Makes all exchanges, in parts.
     *
     * @param part opens buffers, drawn by the first argument, the same for all ranks, and makes an
     *     exchange of each seed
     */
    public static void run(BiConsumer<SplittableRandom, LongStream> part) {
        int iterations = Integer.getInteger("deepep.soak", 100);
        long seed = Long.getLong("deepep.soak.seed", 1);
        for (int first = 0; first < iterations; first += EXCHANGES_PER_BUFFER) {
            int end = Math.min(iterations, first + EXCHANGES_PER_BUFFER);
            part.accept(
                    new SplittableRandom(~(seed << 32 | first)),
                    IntStream.range(first, end).mapToLong(i -> seed << 32 | i));
        }
    }

    /** A routing that a buffer of these limits takes. */
    public static RoutingSpec routing(
            SplittableRandom random, int numRanks, int maxTokens, int experts, int maxTopk) {
        int topk = random.nextInt(1, Math.min(maxTopk, experts) + 1);
        return RoutingSpec.of(numRanks, random.nextInt(maxTokens + 1), experts, topk)
                .withGate(gate(random, experts))
                .withMaskedShare(random.nextInt(4) == 0 ? 0.4 : 0)
                .withDuplicateShare(random.nextInt(4) == 0 ? 0.4 : 0)
                .withVaryingTokens(random.nextBoolean())
                .withIdleRanks(numRanks > 1 && random.nextInt(4) == 0 ? 1 : 0)
                .withSeed(random.nextLong());
    }

    private static Gate gate(SplittableRandom random, int experts) {
        return switch (random.nextInt(8)) {
            case 0 -> new Gate.Zipf(2);
            case 1 -> new Gate.AllToOne(random.nextInt(experts));
            default -> new Gate.Uniform();
        };
    }

    /** A dispatch in which one rank, if it has tokens, selects an expert that there is not. */
    public static void badRouting(ExchangeRank<?, ?> rank) {
        RankContext context = rank.context();
        Routing routing = rank.world().routing();
        if (routing.numRanks() <= CULPRIT || routing.numTokens(CULPRIT) == 0) {
            rank.roundTrip();
            return;
        }
        Plan plan = rank.planOf(context.spoiled(rank.topkIdx(), routing.numExperts(), 0, 0));
        requireRouting(() -> rank.call(plan), "topkIdx");
    }
}
