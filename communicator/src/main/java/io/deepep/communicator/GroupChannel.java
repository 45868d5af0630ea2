package io.deepep.communicator;

import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.util.Collection;
import java.util.List;
import org.jgroups.Address;
import org.jgroups.JChannel;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.FD_ALL3;
import org.jgroups.protocols.FRAG4;
import org.jgroups.protocols.TCP;
import org.jgroups.protocols.TCPPING;
import org.jgroups.protocols.UFC;
import org.jgroups.protocols.UNICAST3;
import org.jgroups.protocols.VERIFY_SUSPECT2;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.NAKACK2;
import org.jgroups.protocols.pbcast.STABLE;
import org.jgroups.stack.Protocol;

/**
 * The JGroups stack of one rank, bottom up: TCP, the seal, discovery at the master address, failure
 * detection (a closed connection or missing heartbeats), admission, reliable and ordered delivery,
 * membership, flow control, fragments.
 */
final class GroupChannel {
    private static final int CONNECT_MILLIS = 1000;
    private static final int JOIN_MILLIS = 2000;
    private static final int LEAVE_MILLIS = 500;
    private static final int HEARTBEATS_PER_TIMEOUT = 5;
    private static final int VERIFY_MILLIS = 1000;
    private static final int LAST_NUMBER_REPEATS = 10;
    private static final int FRAGMENT_BYTES = 60_000;

    private GroupChannel() {}

    /** A channel that is not connected yet. */
    static JChannel create(
            ProcessEnvironment environment, InetAddress master, long start, long timeoutNanos)
            throws Exception {
        SystemLog.takeOver();
        int rank = environment.rank();
        SealProtocol seal = new SealProtocol(new Seal(environment.secret()));
        TCP transport = new MeshTransport();
        transport.setBindAddress(
                rank == 0 ? master : localAddress(master, environment.masterPort()));
        transport.setBindPort(rank == 0 ? environment.masterPort() : 0);
        transport.setPortRange(0);
        transport.enableSuspectEvents(true);
        transport.setSockConnTimeout(CONNECT_MILLIS);
        MasterDiscovery discovery = new MasterDiscovery();
        discovery.setInitialHosts(List.of(new InetSocketAddress(master, environment.masterPort())));
        // Rank 0 tells who asks for an address that did not reach it when the group grew.
        discovery.setPortRange(0).returnEntireCache(true);
        FD_ALL3 heartbeats = new FD_ALL3();
        long silence = environment.failureTimeout().toMillis();
        heartbeats.setInterval(silence / HEARTBEATS_PER_TIMEOUT).setTimeout(silence);
        GMS membership = new GMS();
        membership
                .printLocalAddress(false)
                .setJoinTimeout(JOIN_MILLIS)
                .setLeaveTimeout(LEAVE_MILLIS);
        membership.setMaxJoinAttempts(0);
        NAKACK2 multicast = new NAKACK2();
        // Views are all that is multicast. Connections of two ranks that cross may lose one, which
        // its receiver learns from these.
        multicast.useMcastXmit(false).setResendLastSeqnoMaxTimes(LAST_NUMBER_REPEATS);
        Protocol[] stack = {
            transport,
            seal,
            discovery,
            heartbeats,
            new VERIFY_SUSPECT2().setTimeout(VERIFY_MILLIS),
            new AdmissionProtocol(rank, environment.size(), seal, start, timeoutNanos),
            multicast,
            new UNICAST3(),
            new STABLE(),
            membership,
            new UFC(),
            new FRAG4().setFragSize(FRAGMENT_BYTES)
        };
        JChannel channel = new JChannel(stack);
        discovery.initialized = true;
        Address address = RankAddress.create(rank, environment.size());
        channel.addAddressGenerator(() -> address);
        channel.setName("rank-" + rank);
        channel.setDiscardOwnMessages(true);
        return channel;
    }

    /** The local address from which {@code master} is reached. Sends nothing. */
    private static InetAddress localAddress(InetAddress master, int port) throws SocketException {
        if (master.isLoopbackAddress()) {
            return master;
        }
        try (DatagramSocket route = new DatagramSocket()) {
            route.connect(master, port);
            return route.getLocalAddress();
        }
    }

    /**
     * TCP that leaves connections to those who have them. JGroups' own looks through them at every
     * view: it closes those of processes that are just joining, and drops one without closing it
     * when the address of its peer becomes known in that moment, after which the two refuse each
     * other's connections for good.
     */
    private static final class MeshTransport extends TCP {
        MeshTransport() {
            setId(ClassConfigurator.getProtocolId(TCP.class));
        }

        @Override
        public void retainAll(Collection<Address> members) {}
    }

    /**
     * Discovery at one fixed address. The others listen at any port, which the transport allows
     * only under a dynamic discovery; but rank 0 sends everybody's addresses to those who join only
     * under one that is not.
     */
    private static final class MasterDiscovery extends TCPPING {
        private volatile boolean initialized;

        MasterDiscovery() {
            setId(ClassConfigurator.getProtocolId(TCPPING.class));
        }

        @Override
        public boolean isDynamic() {
            return !initialized;
        }
    }
}
