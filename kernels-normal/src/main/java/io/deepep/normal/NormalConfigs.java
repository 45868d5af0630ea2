package io.deepep.normal;

import io.deepep.Config;

/** How the configurations of a buffer and of a plan fit together. */
public final class NormalConfigs {
    private NormalConfigs() {}

    /**
     * The configuration of one operation.
     *
     * @param override the plan's, or null
     * @param numSms the plan's number of multiprocessors, 0 for that of the configuration
     * @throws IllegalArgumentException if the override does not fit into the buffer's memory
     */
    public static Config choose(Config override, int numSms, Config fallback, Config envelope) {
        if (override == null && numSms == 0) {
            return fallback;
        }
        Config given = override != null ? override : fallback;
        Config chosen = numSms != 0 ? given.withNumSms(numSms) : given;
        requireWithin("numChannels", chosen.numChannels(), envelope.numChannels());
        requireWithin("rdmaRecvChunk", chosen.rdmaRecvChunk(), envelope.rdmaRecvChunk());
        return chosen;
    }

    private static void requireWithin(String name, int given, int allowed) {
        if (given > allowed) {
            throw new IllegalArgumentException(
                    "config "
                            + name
                            + "="
                            + given
                            + " exceeds the "
                            + allowed
                            + " that the buffer was laid out for; open it with a dispatchConfig or"
                            + " combineConfig at least as large");
        }
    }
}
