package io.deepep.testkit;

import io.deepep.Network;
import java.util.Locale;

/** Networks that tests use between nodes. */
public final class TestNetworks {
    private TestNetworks() {}

    /**
     * NVSHMEM over the transport that {@code -Ddeepep.transport=ibgda} names, which then carries
     * everything; without it, over what GPUs of one host reach of each other.
     */
    public static Network nvshmem() {
        String name = System.getProperty("deepep.transport", "none").toUpperCase(Locale.ROOT);
        Network.Transport transport = Network.Transport.valueOf(name);
        return Network.nvshmem(transport).withPureRdma(transport != Network.Transport.NONE);
    }
}
