package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.LoopbackPorts;
import java.security.Provider;
import java.security.Security;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** In a Java without the provider of ciphers. */
@Isolated
@Timeout(60)
class AlgorithmsTest {
    /** Each connection would fail on a thread of its own, and all ranks would wait. */
    @Test
    void aRankThatCannotSealConnectionsSaysSoAtOnce() {
        ProcessEnvironment environment = Groups.environment(0, 2, LoopbackPorts.free());
        Provider ciphers = Security.getProvider("SunJCE");
        int position = List.of(Security.getProviders()).indexOf(ciphers) + 1;
        Security.removeProvider(ciphers.getName());
        try {
            assertThatThrownBy(() -> ProcessCommunicator.open(environment, Groups.LONG))
                    .isInstanceOf(DeepEpUnavailableException.class)
                    .hasMessageContaining("this Java runtime lacks ")
                    .hasMessageContaining("SunJCE");
        } finally {
            Security.insertProviderAt(ciphers, position);
        }
    }
}
