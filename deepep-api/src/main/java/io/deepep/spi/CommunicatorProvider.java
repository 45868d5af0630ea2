package io.deepep.spi;

import io.deepep.Communicator;
import io.deepep.error.DeepEpUnavailableException;
import java.time.Duration;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * The implementation behind {@link Communicator#fromEnvironment}, found by {@link ServiceLoader}.
 */
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
     * @throws DeepEpUnavailableException if there is none
     */
    static CommunicatorProvider load() {
        return ServiceLoader.load(
                        CommunicatorProvider.class, CommunicatorProvider.class.getClassLoader())
                .findFirst()
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        "no implementation of %s was found"
                                                .formatted(CommunicatorProvider.class.getName()),
                                        "add the artifact io.deepep:deepep-communicator"));
    }
}
