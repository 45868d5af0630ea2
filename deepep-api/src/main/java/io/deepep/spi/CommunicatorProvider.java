package io.deepep.spi;

import io.deepep.Communicator;
import java.time.Duration;
import java.util.Map;

/** The implementation behind {@link Communicator#fromEnvironment}, found by the service loader. */
public interface CommunicatorProvider {
    /**
     * Joins the group that a launcher's variables describe. Collective.
     *
     * @param variables environment variables, as from {@link System#getenv()}
     * @param timeout how long to wait for the other ranks
     */
    Communicator open(Map<String, String> variables, Duration timeout);

    /**
     * Finds the provider.
     *
     * @throws io.deepep.error.DeepEpUnavailableException if there is none
     */
    static CommunicatorProvider load() {
        return Providers.load(
                CommunicatorProvider.class,
                "deepep-communicator",
                "jlink cannot include it, use the class path");
    }
}
