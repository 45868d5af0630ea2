package io.deepep.communicator;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.List;

/** The address at which rank 0 listens. */
final class MasterAddress {
    private static final int CONNECT_MILLIS = 1000;
    private static final long ATTEMPT_MILLIS = 250;

    private MasterAddress() {}

    /**
     * Hosts start at different times, so the name of rank 0's may not be known yet. It may have
     * several addresses, which hosts see in different orders: rank 0 listens at the first that is
     * its host's, and the others look where somebody answers.
     *
     * @throws DeepEpUnavailableException if there is none, or this host has no network at all
     */
    static InetAddress find(ProcessEnvironment environment, long start, long timeoutNanos) {
        requireNetwork(environment.rank());
        while (true) {
            boolean over = System.nanoTime() - start >= timeoutNanos;
            try {
                List<InetAddress> all = addresses(environment);
                for (InetAddress each : all) {
                    if (all.size() == 1 || isRankZero(environment, each)) {
                        return each;
                    }
                }
                if (over || environment.rank() == 0) {
                    return all.getFirst();
                }
            } catch (UnknownHostException unknown) {
                if (over) {
                    throw new DeepEpUnavailableException(
                            "MASTER_ADDR=" + environment.masterAddress() + " cannot be resolved",
                            "set it to the host name or address of rank 0's host",
                            unknown);
                }
            }
            pause(environment.rank());
        }
    }

    /** Else JGroups could not be loaded, then or later in this process. */
    private static void requireNetwork(int rank) {
        try {
            NetworkInterface.networkInterfaces();
        } catch (SocketException none) {
            throw new DeepEpUnavailableException(
                    "rank %s finds no network interface with an address: %s"
                            .formatted(rank, none.getMessage()),
                    "bring one up (ip link set lo up is enough for one host)",
                    none);
        }
    }

    private static List<InetAddress> addresses(ProcessEnvironment environment)
            throws UnknownHostException {
        String master = environment.masterAddress();
        InetAddress[] all = InetAddress.getAllByName(master);
        // Whoever gives a loopback address lets one host play several.
        if (environment.localSize() == environment.size() || LauncherVariables.isLoopback(master)) {
            return List.of(all[0]);
        }
        List<InetAddress> reachable =
                Arrays.stream(all).filter(MasterAddress::isForOtherHosts).toList();
        if (reachable.isEmpty()) {
            throw new DeepEpUnavailableException(
                    "MASTER_ADDR=%s is %s on this host, which other hosts do not reach"
                            .formatted(master, all[0].getHostAddress()),
                    "set it to the address of rank 0's host in the network, or to 127.0.0.1 if"
                            + " all ranks are on one host");
        }
        return reachable;
    }

    /**
     * Some systems know their own name by a loopback or link-local address. The first leads each
     * host to itself; the second needs a zone, whose name differs from host to host. 0.0.0.0 is an
     * address to listen at, but rank 0 also tells its address to the others.
     */
    private static boolean isForOtherHosts(InetAddress address) {
        return !address.isLoopbackAddress()
                && !address.isAnyLocalAddress()
                && !(address instanceof Inet6Address && address.isLinkLocalAddress());
    }

    private static boolean isRankZero(ProcessEnvironment environment, InetAddress address) {
        return environment.rank() == 0
                ? isOfThisHost(address)
                : answers(new InetSocketAddress(address, environment.masterPort()));
    }

    private static boolean isOfThisHost(InetAddress address) {
        try {
            return NetworkInterface.getByInetAddress(address) != null;
        } catch (SocketException unknown) {
            return false;
        }
    }

    private static boolean answers(InetSocketAddress address) {
        try (Socket socket = new Socket()) {
            socket.connect(address, CONNECT_MILLIS);
            return true;
        } catch (IOException nobody) {
            return false;
        }
    }

    private static void pause(int rank) {
        try {
            Thread.sleep(ATTEMPT_MILLIS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw Exchange.interrupted(rank, interrupted);
        }
    }
}
