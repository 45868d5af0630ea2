package io.deepep.spi;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.security.SecureRandom;

/** Ports of the loopback address where a group can meet. */
public final class LoopbackPorts {
    /** Below the ports that the system gives to connections of its choice. */
    private static final int FIRST = 20_000;

    private static final int LAST = 32_767;
    private static final int ATTEMPTS = 100;

    private LoopbackPorts() {}

    /**
     * One that nobody listens at now.
     *
     * @throws DeepEpUnavailableException if no port can be had, as where no interface has the
     *     address
     */
    public static int free() {
        return free(InetAddress.getLoopbackAddress());
    }

    static int free(InetAddress address) {
        SecureRandom random = new SecureRandom();
        IOException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int port = random.nextInt(FIRST, LAST + 1);
            try (ServerSocket probe = new ServerSocket()) {
                probe.bind(new InetSocketAddress(address, port));
                return port;
            } catch (IOException taken) {
                last = taken;
            }
        }
        throw new DeepEpUnavailableException(
                "no port of %s is free: %s".formatted(address.getHostAddress(), last.getMessage()),
                "bring the loopback interface up (ip link set lo up), or end what holds the ports",
                last);
    }
}
