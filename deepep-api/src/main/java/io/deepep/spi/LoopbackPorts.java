package io.deepep.spi;

import java.io.IOException;
import java.io.UncheckedIOException;
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

    /** One that nobody listens at now. */
    public static int free() {
        SecureRandom random = new SecureRandom();
        IOException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int port = random.nextInt(FIRST, LAST + 1);
            try (ServerSocket probe = new ServerSocket()) {
                probe.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return port;
            } catch (IOException taken) {
                last = taken;
            }
        }
        throw new UncheckedIOException("no free port on the loopback address", last);
    }
}
