package io.deepep.normal;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;

/**
 * The configurations of a buffer, which plans may override as far as its memory allows.
 *
 * @param topology the group
 * @param dispatch that {@link #requireFor} allows, as {@code combine} is
 */
public record NormalConfigs(EpTopology topology, Config dispatch, Config combine) {
    /** What calls may use: the larger of both. */
    public Config envelope() {
        return dispatch.covering(combine);
    }

    /**
     * The configuration of a dispatch.
     *
     * @throws IllegalArgumentException if that of the plan does not fit into the buffer's memory
     */
    public Config of(DispatchPlan plan) {
        return choose(plan.config(), plan.numSms(), dispatch);
    }

    /** The same of a combine. */
    public Config of(CombinePlan plan) {
        return choose(plan.config(), plan.numSms(), combine);
    }

    /** {@code override} may be null, and {@code numSms} 0. */
    private Config choose(Config override, int numSms, Config fallback) {
        if (override == null && numSms == 0) {
            return fallback;
        }
        Config given = override != null ? override : fallback;
        Config chosen = numSms != 0 ? given.withNumSms(numSms) : given;
        requireFor(topology, chosen);
        Config envelope = envelope();
        requireWithin("numSms", chosen.numSms(), envelope.numSms());
        requireWithin("rdmaRecvChunk", chosen.rdmaRecvChunk(), envelope.rdmaRecvChunk());
        return chosen;
    }

    /** The multiprocessors of a channel, one to send and one to forward; on one node, 1. */
    public static int fewestSms(EpTopology topology) {
        return topology.isInternode() ? 2 : 1;
    }

    /** Refuses a configuration that nodes cannot exchange rows with. */
    public static void requireFor(EpTopology topology, Config config) {
        int fewest = fewestSms(topology);
        if (config.numSms() < fewest) {
            throw new IllegalArgumentException(
                    "numSms=%s is for one node, but the group has %s; give at least %s"
                            .formatted(config.numSms(), topology.numRdmaRanks(), fewest));
        }
    }

    private static void requireWithin(String name, int given, int allowed) {
        if (given > allowed) {
            throw new IllegalArgumentException(
                    ("%s=%s exceeds the %s that the buffer was laid out for; open it with a dispatchConfig or"
                                    + " combineConfig at least as large")
                            .formatted(name, given, allowed));
        }
    }
}
