package io.deepep.communicator;

import io.deepep.Communicator;
import io.deepep.spi.CommunicatorProvider;
import java.time.Duration;
import java.util.Map;

/** Opens {@link ProcessCommunicator}s for {@link Communicator#fromEnvironment}. */
public final class ProcessCommunicatorProvider implements CommunicatorProvider {
    /** Called by the service loader. */
    public ProcessCommunicatorProvider() {}

    @Override
    public Communicator open(Map<String, String> variables, Duration timeout) {
        return ProcessCommunicator.open(ProcessEnvironment.from(variables), timeout);
    }
}
