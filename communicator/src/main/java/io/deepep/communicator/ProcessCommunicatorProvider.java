package io.deepep.communicator;

import io.deepep.Communicator;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.CommunicatorProvider;
import java.time.Duration;
import java.util.Map;

/** Opens {@link ProcessCommunicator}s for {@link Communicator#fromEnvironment}. */
public final class ProcessCommunicatorProvider implements CommunicatorProvider {
    /** Called by the service loader. */
    public ProcessCommunicatorProvider() {}

    @Override
    public Communicator open(Map<String, String> variables, Duration timeout) {
        ProcessEnvironment environment = ProcessEnvironment.from(variables);
        try {
            return ProcessCommunicator.open(environment, timeout);
        } catch (LinkageError incomplete) {
            throw new DeepEpUnavailableException(
                    "JGroups, which ranks as processes need, cannot be loaded: "
                            + reason(incomplete),
                    "keep all of org.jgroups:jgroups on the class path, under its own package names and in the"
                            + " version that deepep-communicator brings",
                    incomplete);
        }
    }

    /**
     * JGroups loads classes by name; where one is missing, the class that asks for it cannot start.
     */
    private static Throwable reason(LinkageError incomplete) {
        Throwable reason = incomplete;
        while (reason.getCause() != null) {
            reason = reason.getCause();
        }
        return reason;
    }
}
