package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import java.net.InetAddress;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LoopbackPortsTest {
    /** As the loopback address is where the interface is down. */
    private static final InetAddress NOT_HERE = InetAddress.ofLiteral("192.0.2.1");

    @Test
    void anAddressThatIsNotOfThisHostIsNamed() {
        assertThatThrownBy(() -> LoopbackPorts.free(NOT_HERE))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageStartingWith("no port of 192.0.2.1 is free: ")
                .hasMessageContaining("ip link set lo up");
    }

    /** Who has one may listen at it only later, and at those above when it starts again. */
    @Test
    void portsAreFarFromOneAnother() {
        int[] ports = IntStream.range(0, 100).map(_ -> LoopbackPorts.free()).sorted().toArray();
        for (int i = 1; i < ports.length; i++) {
            assertThat(ports[i] - ports[i - 1]).as("from %s on", ports[i - 1]).isGreaterThan(20);
        }
    }
}
