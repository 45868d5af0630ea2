package io.deepep.normal;

import io.deepep.Config;
import io.deepep.EpTopology;

/** How the configurations of a buffer and of a plan fit together. */
public final class NormalConfigs {
    private NormalConfigs() {}

    /**
     * The configuration of one operation.
     *
     * @param topology the group
     * @param override the plan's, or null
     * @param numSms the plan's number of multiprocessors, 0 for that of the configuration
     * @throws IllegalArgumentException if the override does not fit into the buffer's memory
     */
    public static Config choose(
            EpTopology topology, Config override, int numSms, Config fallback, Config envelope) {
        if (override == null && numSms == 0) {
            return fallback;
        }
        Config given = override != null ? override : fallback;
        Config chosen = numSms != 0 ? given.withNumSms(numSms) : given;
        requireFor(topology, chosen);
        requireWithin("numChannels", chosen.numChannels(), envelope.numChannels());
        requireWithin("rdmaRecvChunk", chosen.rdmaRecvChunk(), envelope.rdmaRecvChunk());
        return chosen;
    }

    /**
     * Refuses a configuration that nodes cannot exchange rows with: a channel takes two
     * multiprocessors.
     */
    public static void requireFor(EpTopology topology, Config config) {
        if (topology.isInternode() && config.numChannels() == 0) {
            throw new IllegalArgumentException(
                    "numSms=%s is for one node, but the group has %s; give at least 2"
                            .formatted(config.numSms(), topology.numRdmaRanks()));
        }
    }

    private static void requireWithin(String name, int given, int allowed) {
        if (given > allowed) {
            throw new IllegalArgumentException(
                    ("config %s=%s exceeds the %s that the buffer was laid out for; open it with a dispatchConfig or"
                                    + " combineConfig at least as large")
                            .formatted(name, given, allowed));
        }
    }
}
