package io.deepep.spi;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.security.SecureRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** Ports of the loopback address where a group can meet. */
public final class LoopbackPorts {
    /** Below the ports that the system gives to connections of its choice. */
    private static final int FIRST = 20_000;

    private static final int LAST = 32_767;
    private static final int NUMBER = LAST - FIRST + 1;
    private static final int ATTEMPTS = 100;

    /** A group that starts again meets above its first port. Has no divisor in common with all. */
    private static final int STRIDE = 65;

    /**
     * In each process from another one on, as several may look for a port at once; and in one
     * process no port twice, as who has one may not listen at it yet.
     */
    private static final AtomicInteger NEXT = new AtomicInteger(new SecureRandom().nextInt(NUMBER));

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
        IOException last = null;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int port = FIRST + Math.floorMod(NEXT.getAndAdd(STRIDE), NUMBER);
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
