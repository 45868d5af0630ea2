package io.deepep.bench.run;

import io.deepep.Backend;
import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;

/**
 * What a command is to run.
 *
 * @param backend who moves the bytes
 * @param topology of the group; the rank does not matter
 * @param routing the routing of most cases, random or recorded
 * @param variations recipe of the same shape, from which cases make their own routings
 * @param hidden H
 * @param timeout how long to wait for a peer
 * @param numSms multiprocessors per operation, 0 for the recommended number
 */
public record Job(
        Backend backend,
        EpTopology topology,
        Routing routing,
        RoutingSpec variations,
        int hidden,
        Duration timeout,
        int numSms) {
    /** How long ranks wait for one another unless told otherwise. */
    public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(60);

    /**
     * A job on one node of the host backend with uniform random routing, as benchmarks and tests
     * use it.
     */
    public static Job onHost(int numRanks, int numTokens, int hidden, int numExperts, int numTopk) {
        RoutingSpec recipe = RoutingSpec.of(numRanks, numTokens, numExperts, numTopk);
        EpTopology topology = new EpTopology(0, numRanks, numRanks);
        return new Job(
                Backend.HOST, topology, recipe.generate(), recipe, hidden, DEFAULT_TIMEOUT, 0);
    }

    /** R. */
    public int numRanks() {
        return topology.numRanks();
    }

    /** Whether FP8 rows can be dispatched: their scales are for 128 channels each. */
    public boolean allowsFp8() {
        return hidden % Fp8E4m3.CHANNELS_PER_SCALE == 0;
    }

    /** The configuration of dispatches. */
    public Config dispatchConfig() {
        return withSms(Config.recommendedForDispatch(numRanks()));
    }

    /** The configuration of combines. */
    public Config combineConfig() {
        return withSms(Config.recommendedForCombine(numRanks()));
    }

    private Config withSms(Config recommended) {
        return numSms == 0 ? recommended : recommended.withNumSms(numSms);
    }

    /** The shape in a line. */
    public String describe() {
        return topology.numRdmaRanks()
                + " x "
                + topology.numNvlRanks()
                + " ranks, up to "
                + routing.maxTokens()
                + " tokens each, hidden "
                + hidden
                + ", top-"
                + routing.numTopk()
                + " of "
                + routing.numExperts()
                + " experts";
    }
}
