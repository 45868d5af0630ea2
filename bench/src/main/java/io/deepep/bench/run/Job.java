package io.deepep.bench.run;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.Network;
import io.deepep.NormalDefaults;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * What a command is to run.
 *
 * @param placement who moves the bytes, and where ranks live
 * @param topology of the group; the rank does not matter
 * @param network between its nodes, on GPUs
 * @param routing the routing of most cases, random or recorded
 * @param variations recipe of the same shape, from which cases make their own routings
 * @param hidden H
 * @param timeout how long to wait for a peer
 * @param masksTimedOut whether buffers mask ranks that time out
 * @param sms multiprocessors per operation to measure with; empty for what suits the placement
 */
public record Job(
        Placement placement,
        EpTopology topology,
        Network network,
        Routing routing,
        RoutingSpec variations,
        int hidden,
        Duration timeout,
        boolean masksTimedOut,
        List<Integer> sms) {
    /**
     * Numbers of multiprocessors that GPUs are measured with unless told otherwise, besides the
     * default.
     */
    public static final List<Integer> SWEEP = List.of(8, 12, 16, 24, 32, 64);

    /** The most that a group may have. */
    public static final int MOST_EXPERTS = 1 << 16;

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
                Placement.host(""),
                topology,
                Network.auto(),
                recipe.generate(),
                recipe,
                hidden,
                DEFAULT_TIMEOUT,
                false,
                List.of());
    }

    /** The same job with the first {@code number} tokens of each rank. */
    public Job withNumTokens(int number) {
        return new Job(
                placement,
                topology,
                network,
                routing.first(number),
                variations.withNumTokens(number),
                hidden,
                timeout,
                masksTimedOut,
                sms);
    }

    /**
     * Routings of the same shape that are harder than the job's own, by what is special about them.
     *
     * @param hottest the expert that gets all tokens in one of them
     */
    public Map<String, Routing> hardRoutings(int hottest) {
        Map<String, Routing> routings = new LinkedHashMap<>();
        routings.put("token counts differ", variations.withVaryingTokens(true).generate());
        routings.put("idle ranks", variations.withIdleRanks((numRanks() + 1) / 2).generate());
        routings.put("masked", variations.withMaskedShare(0.3).generate());
        routings.put("experts named twice", variations.withDuplicateShare(0.2).generate());
        routings.put("zipf", variations.withGate(new Gate.Zipf(1.0)).generate());
        routings.put(
                "all to one expert", variations.withGate(new Gate.AllToOne(hottest)).generate());
        return routings;
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
        return withSms(defaults().dispatch());
    }

    /** The configuration of combines. */
    public Config combineConfig() {
        return withSms(defaults().combine());
    }

    private NormalDefaults defaults() {
        return NormalDefaults.of(topology, placement.device(0));
    }

    private Config withSms(Config byDefault) {
        return byDefault.withNumSms(numSms(byDefault));
    }

    /** The first given number, else the default one as far as ranks that share a GPU let it. */
    private int numSms(Config byDefault) {
        return sms.isEmpty()
                ? Math.min(byDefault.numSms(), placement.smsPerRank(numRanks()))
                : sms.getFirst();
    }

    /** The multiprocessors of a dispatch, also those that no configuration can have. */
    public int numSms() {
        return numSms(defaults().dispatch());
    }

    /**
     * The numbers of multiprocessors to measure with: the given ones; else on GPUs those of {@link
     * #SWEEP} that all ranks of a GPU can hold at once, and the default; on the host that one.
     */
    public List<Integer> measuredSms() {
        if (!sms.isEmpty() || !placement.isCuda()) {
            return sms.isEmpty() ? List.of(numSms()) : sms;
        }
        int room = placement.smsPerRank(numRanks());
        return IntStream.concat(SWEEP.stream().mapToInt(number -> number), IntStream.of(numSms()))
                .filter(number -> number <= room)
                .sorted()
                .distinct()
                .boxed()
                .toList();
    }

    /** The largest number that any operation uses. */
    public int mostSms() {
        return Math.max(Collections.max(measuredSms()), numSms());
    }

    /** The shape in a line. */
    public String describe() {
        return "%s x %s ranks, up to %s tokens each, hidden %s, top-%s of %s experts"
                .formatted(
                        topology.numRdmaRanks(),
                        topology.numNvlRanks(),
                        routing.maxTokens(),
                        hidden,
                        routing.numTopk(),
                        routing.numExperts());
    }
}
