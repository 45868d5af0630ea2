package io.deepep.communicator;

import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jgroups.Global;
import org.jgroups.JChannel;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.FD_ALL3;
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
 * The JGroups stack of one rank, bottom up: TCP over sealed connections, discovery at the master
 * address, failure detection (a closed connection or missing heartbeats), admission, reliable and
 * ordered delivery, membership, flow control.
 */
final class GroupChannel {
    private static final int CONNECT_MILLIS = 1000;
    private static final int JOIN_MILLIS = 2000;
    private static final int LEAVE_MILLIS = 500;
    private static final int HEARTBEATS_PER_TIMEOUT = 5;
    private static final int VERIFY_MILLIS = 1000;
    private static final int LAST_NUMBER_REPEATS = 10;

    private GroupChannel() {}

    /** A channel that is not connected yet. */
    static JChannel create(
            ProcessEnvironment environment,
            InetAddress master,
            Door door,
            AdmissionProtocol admission)
            throws Exception {
        refuseSerializedObjects();
        int rank = environment.rank();
        TCP transport = new MeshTransport();
        transport.setSocketFactory(door);
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
        long silence = TimeUnit.MILLISECONDS.convert(environment.failureTimeout()); // even forever
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
            discovery,
            heartbeats,
            new VERIFY_SUSPECT2().setTimeout(VERIFY_MILLIS),
            admission,
            multicast,
            new UNICAST3(),
            new STABLE(),
            membership,
            new UFC()
        };
        JChannel channel = new JChannel(stack);
        discovery.initialized = true;
        // Otherwise it listens for requests of strangers at a port of its own.
        transport.getDiagnosticsHandler().setEnabled(false);
        channel.addAddressGenerator(door::address);
        channel.setName("rank-" + rank);
        channel.setDiscardOwnMessages(true);
        return channel;
    }

    /**
     * A second lock behind {@link MeshTransport}: whatever reaches Java serialization through
     * JGroups is refused, unless the application has said itself what JGroups may read.
     */
    private static void refuseSerializedObjects() {
        if (System.getProperty(Global.DESERIALIZATION_FILTER) == null) {
            System.setProperty(Global.DESERIALIZATION_FILTER, "!*");
        }
    }

    /** The local address from which {@code master} is reached. Sends nothing. */
    private static InetAddress localAddress(InetAddress master, int port) throws SocketException {
        if (master.isLoopbackAddress()) {
            return master;
        }
        try (DatagramSocket route = new DatagramSocket()) {
            route.connect(new InetSocketAddress(master, port));
            return route.getLocalAddress();
        }
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
