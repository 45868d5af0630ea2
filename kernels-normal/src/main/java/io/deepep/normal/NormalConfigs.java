package io.deepep.normal;

import io.deepep.Config;

/** How the configurations of a buffer and of a request fit together. */
public final class NormalConfigs {
    private NormalConfigs() {}

    /**
     * The configuration of one operation.
     *
     * @param override the request's, or null
     * @throws IllegalArgumentException if the override does not fit into the buffer's memory
     */
    public static Config choose(Config override, Config fallback, Config envelope) {
        if (override == null) {
            return fallback;
        }
        requireWithin("numChannels", override.numChannels(), envelope.numChannels());
        requireWithin("rdmaRecvChunk", override.rdmaRecvChunk(), envelope.rdmaRecvChunk());
        return override;
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
                            + " that the buffer was laid out for; open it with a dispatchConfig or combineConfig at least as large");
        }
    }
}
