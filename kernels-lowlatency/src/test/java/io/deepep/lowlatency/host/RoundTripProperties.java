package io.deepep.lowlatency.host;

import io.deepep.LowLatencyLimits;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Any shape and routing: what arrives and what comes back is what plain loops over it all say. */
class RoundTripProperties {
    @Property(tries = 60)
    void anyShape(
            @ForAll @IntRange(min = 1, max = 9) int numRanks,
            @ForAll @IntRange(min = 1, max = 5) int localExperts,
            @ForAll @IntRange(min = 1, max = 12) int maxTokens,
            @ForAll @IntRange(min = 1, max = 32) int numTopk,
            @ForAll @IntRange(min = 1, max = 3) int hiddenGroups,
            @ForAll long seed)
            throws Exception {
        var limits =
                new LowLatencyLimits(
                        maxTokens, 128 * hiddenGroups, numTopk, numRanks * localExperts);
        Batch first = Batch.random(limits, numRanks, numTopk, seed);
        Batch second = Batch.random(limits, numRanks, 1 + numTopk / 2, seed + 1);
        new Group(numRanks, limits)
                .run(
                        rank -> {
                            rank.roundTrip(first);
                            rank.roundTrip(second);
                            rank.roundTrip(first);
                        });
    }
}
