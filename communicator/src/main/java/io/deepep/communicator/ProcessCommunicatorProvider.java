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
        } catch (NoClassDefFoundError missing) {
            throw new DeepEpUnavailableException(
                    "ranks as processes need a class that is missing ("
                            + missing.getMessage()
                            + ")",
                    "keep all of org.jgroups:jgroups on the class path; make a Java runtime of your own"
                            + " with jlink --add-modules java.management,java.naming,java.xml",
                    missing);
        }
    }
}
