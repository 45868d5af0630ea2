package io.deepep.testkit.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class RoutingSpecProperties {
    @Property(tries = 100)
    void uniformSelectionsAreDistinct(
            @ForAll @IntRange(min = 1, max = 8) int numRanks,
            @ForAll @IntRange(max = 20) int numTokens,
            @ForAll @IntRange(min = 1, max = 4) int local,
            @ForAll long seed) {
        int experts = numRanks * local;
        int topk = Math.min(experts, 6);
        Routing routing =
                RoutingSpec.of(numRanks, numTokens, experts, topk).withSeed(seed).generate();
        for (int rank = 0; rank < numRanks; rank++) {
            assertThat(routing.numTokens(rank)).isEqualTo(numTokens);
            for (int token = 0; token < numTokens; token++) {
                long[] chosen = routing.topkIdx(rank)[token];
                assertThat(
                                Arrays.stream(chosen)
                                        .distinct()
                                        .filter(e -> e >= 0 && e < experts)
                                        .count())
                        .isEqualTo(topk);
                double sum = 0;
                for (float weight : routing.weights(rank)[token]) {
                    assertThat(weight).isPositive();
                    sum += weight;
                }
                assertThat(Math.abs(sum - 1)).isLessThan(1e-5);
            }
        }
    }

    @Property(tries = 50)
    void groupLimitedGatesUseAtMostTheirGroups(
            @ForAll @IntRange(min = 1, max = 8) int groups,
            @ForAll boolean biased,
            @ForAll long seed) {
        Routing routing =
                RoutingSpec.of(8, 10, 64, 8)
                        .withGate(new Gate.GroupLimited(8, groups, biased))
                        .withSeed(seed)
                        .generate();
        for (int rank = 0; rank < 8; rank++) {
            for (long[] chosen : routing.topkIdx(rank)) {
                assertThat(Arrays.stream(chosen).distinct().count()).isEqualTo(8);
                assertThat(Arrays.stream(chosen).map(e -> e / 8).distinct().count())
                        .isLessThanOrEqualTo(groups);
            }
        }
    }

    @Test
    void groupsWithTheBestTwoExpertsWin() {
        double[] scores = {.9, 0, .1, .5, .5, .4, .3, .3};
        Selection.keepBestGroups(scores, 4, 2);
        assertThat(Selection.best(scores, 3)).containsExactly(0, 4, 1 + 4);
        double low = Double.NEGATIVE_INFINITY;
        assertThat(scores).containsExactly(.9, 0, low, low, .5, .4, low, low);
    }

    @Test
    void zipfPrefersTheFirstExperts() {
        Routing routing = RoutingSpec.of(4, 200, 16, 2).withGate(new Gate.Zipf(1.5)).generate();
        long[] counts = new long[16];
        for (int rank = 0; rank < 4; rank++) {
            for (long[] chosen : routing.topkIdx(rank)) {
                assertThat(chosen[0]).isNotEqualTo(chosen[1]);
                Arrays.stream(chosen).forEach(e -> counts[(int) e]++);
            }
        }
        assertThat(counts[0]).isGreaterThan(3 * counts[8]);
    }

    @Test
    void allToOne() {
        Routing routing = RoutingSpec.of(2, 5, 4, 3).withGate(new Gate.AllToOne(3)).generate();
        for (int token = 0; token < 5; token++) {
            assertThat(routing.topkIdx(1)[token]).containsOnlyOnce(3);
            assertThat(Arrays.stream(routing.topkIdx(1)[token]).sum()).isEqualTo(1);
        }
    }

    @Test
    void sameSpecSameRoutingOtherSeedOtherRouting() {
        RoutingSpec spec = RoutingSpec.of(4, 20, 16, 4).withMaskedShare(.2).withVaryingTokens(true);
        for (int rank = 0; rank < 4; rank++) {
            assertThat(spec.generate().topkIdx(rank)).isDeepEqualTo(spec.generate().topkIdx(rank));
            assertThat(spec.generate().weights(rank)).isDeepEqualTo(spec.generate().weights(rank));
        }
        RoutingSpec other = RoutingSpec.of(4, 20, 16, 4).withSeed(1);
        assertThat(other.generate().topkIdx(0))
                .isNotEqualTo(other.withSeed(2).generate().topkIdx(0));
    }

    @Test
    void masksDuplicatesIdleRanksAndDifferentCounts() {
        RoutingSpec spec = RoutingSpec.of(4, 50, 16, 4);
        assertThat(spec.withMaskedShare(1).generate().topkIdx(0)[0]).containsOnly(-1);
        Routing doubled = spec.withDuplicateShare(1).generate();
        assertThat(Arrays.stream(doubled.topkIdx(0)))
                .anyMatch(chosen -> Arrays.stream(chosen).distinct().count() == 1);
        Routing idle = spec.withIdleRanks(2).generate();
        assertThat(new int[] {idle.numTokens(1), idle.numTokens(2), idle.numTokens(3)})
                .containsExactly(50, 0, 0);
        Routing varying = spec.withVaryingTokens(true).generate();
        assertThat(Arrays.stream(new int[] {0, 1, 2, 3}).map(varying::numTokens).distinct().count())
                .isGreaterThan(1);
        assertThat(varying.maxTokens()).isLessThanOrEqualTo(50);
    }

    /** What low latency has room for. */
    @Property
    void noRankSelectsAnExpertMoreOftenThanItMayHaveTokens(
            @ForAll @IntRange(min = 1, max = 9) int numTokens,
            @ForAll boolean varying,
            @ForAll @DoubleRange(max = 1) double duplicateShare,
            @ForAll @DoubleRange(max = 0.5) double maskedShare,
            @ForAll long seed) {
        Routing routing =
                RoutingSpec.of(2, numTokens, 6, 4)
                        .withVaryingTokens(varying)
                        .withDuplicateShare(duplicateShare)
                        .withMaskedShare(maskedShare)
                        .withSeed(seed)
                        .generate();
        long[] times = new long[6];
        Arrays.stream(routing.topkIdx(1))
                .flatMapToLong(Arrays::stream)
                .filter(expert -> expert >= 0)
                .forEach(expert -> times[(int) expert]++);
        assertThat(Arrays.stream(times)).allMatch(number -> number <= numTokens);
    }

    @Test
    void refusesImpossibleSpecs() {
        requireRefused(
                () -> RoutingSpec.of(3, 1, 4, 1), "numExperts=4 is not a multiple of numRanks=3");
        requireRefused(() -> RoutingSpec.of(2, 1, 4, 5), "numTopk=5 exceeds numExperts=4");
        RoutingSpec spec = RoutingSpec.of(2, 1, 8, 4);
        requireRefused(() -> spec.withGate(new Gate.GroupLimited(3, 1, false)), "numGroups=3");
        requireRefused(() -> spec.withGate(new Gate.GroupLimited(4, 5, false)), "numTopkGroups=5");
        requireRefused(() -> spec.withGate(new Gate.GroupLimited(4, 1, false)), "the 2 experts");
        requireRefused(() -> spec.withGate(new Gate.AllToOne(8)), "expert=8");
        requireRefused(() -> spec.withMaskedShare(1.5), "maskedShare=1.5");
        requireRefused(() -> spec.withDuplicateShare(Double.NaN), "duplicateShare=NaN");
        requireRefused(() -> spec.withIdleRanks(3), "numIdleRanks=3");
        requireRefused(
                () -> Routing.of(2, 1, new long[][][] {{{2}}}, new float[][][] {{{1}}}),
                "expert=2");
        requireRefused(
                () -> Routing.of(2, 2, new long[][][] {{{1}}}, new float[][][] {{{1}}}),
                "numTopk=2");
    }

    private static void requireRefused(ThrowingCallable call, String message) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    @Test
    void tokensCarryTheirMark() {
        Tokens tokens = Tokens.bf16(5, 300, 8, 0);
        int[] mark = new int[Tokens.MARK_ELEMENTS];
        for (int i = 0; i < mark.length; i++) {
            mark[i] = (int) tokens.x().getFloat(299, i);
        }
        assertThat(mark).containsExactly(Tokens.mark(5, 299));
        assertThat(Tokens.describe(mark)).isEqualTo("like rank 5, token 299");
        assertThat(Tokens.describe(new int[] {-1, 0, 0, 0})).isEqualTo("no token's row");
    }
}
