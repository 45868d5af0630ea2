package io.deepep.cuda.rdma;

import io.deepep.cuda.rdma.Command.Capabilities;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A network card that this process has opened, and one protection domain, which everything made
 * here belongs to. Queues need a card of the family mlx5; what was made here is closed before this
 * is.
 */
public final class RdmaDevice implements AutoCloseable {
    private static final int LOCAL_WRITE = 1;
    private static final int REMOTE_WRITE = 2;
    private static final int REMOTE_READ = 4;
    private static final int REMOTE_ATOMIC = 8;
    private static final int RELAXED_ORDERING = 1 << 20;
    private static final long DOMAIN_OBJECT = 1 << 6;
    private static final int GID_BYTES = 16;

    /** {@code ENOSYS}: the kernel has no RDMA. */
    private static final int NO_RDMA = 38;

    private final RdmaLibraries libraries = RdmaLibraries.get();
    private final String name;
    private final MemorySegment context;
    private final MemorySegment domain;
    private final RdmaFacts facts;

    private RdmaDevice(String name, MemorySegment context) {
        this.name = name;
        this.context = context;
        try {
            this.facts = readFacts();
            this.domain = libraries.allocPd.make(name, context);
        } catch (RuntimeException | Error e) {
            libraries.closeDevice.call(context);
            throw e;
        }
    }

    /** Why no device can be opened; empty if the libraries are there. */
    public static Optional<String> unavailabilityReason() {
        return RdmaLibraries.unavailabilityReason();
    }

    /** The names of all devices that this process may open, for example {@code mlx5_0}. */
    public static List<String> names() {
        RdmaLibraries libraries = RdmaLibraries.get();
        try (DeviceList list = new DeviceList(libraries)) {
            return List.copyOf(list.names);
        }
    }

    /**
     * Opens a device.
     *
     * @param name as {@code mlx5_0}
     * @throws DeepEpUnavailableException if there is no such device
     * @throws NativeCallException if it cannot be opened
     */
    public static RdmaDevice open(String name) {
        RdmaLibraries libraries = RdmaLibraries.get();
        try (DeviceList list = new DeviceList(libraries)) {
            int idx = list.names.indexOf(name);
            if (idx < 0) {
                throw new DeepEpUnavailableException(
                        "libibverbs knows no device " + name + "; it lists " + list.names,
                        "give the process access to /dev/infiniband, and load the driver mlx5_ib");
            }
            return new RdmaDevice(name, libraries.openDevice.make(name, list.device(idx)));
        }
    }

    /** What libibverbs lists, until closed. */
    private static final class DeviceList implements AutoCloseable {
        private final RdmaLibraries libraries;
        private final MemorySegment list;
        private final List<String> names = new ArrayList<>();

        DeviceList(RdmaLibraries libraries) {
            this.libraries = libraries;
            list = read();
            for (int i = 0; !list.equals(MemorySegment.NULL) && device(i).address() != 0; i++) {
                names.add(libraries.getDeviceName.make("this host", device(i)).getString(0));
            }
        }

        private MemorySegment read() {
            try {
                return libraries.getDeviceList.make("this host", MemorySegment.NULL);
            } catch (NativeCallException e) {
                if (e.code() == NO_RDMA) {
                    return MemorySegment.NULL;
                }
                throw e;
            }
        }

        MemorySegment device(int idx) {
            return list.getAtIndex(ValueLayout.ADDRESS, idx);
        }

        @Override
        public void close() {
            if (!list.equals(MemorySegment.NULL)) {
                libraries.freeDeviceList.call(list);
            }
        }
    }

    private RdmaFacts readFacts() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment device = arena.allocate(RdmaStructs.DEVICE_ATTR_BYTES, Long.BYTES);
            libraries.queryDevice.check(name, context, device);
            Command general = Command.capabilities(arena, Capabilities.GENERAL_NOW);
            Command atomics = Command.capabilities(arena, Capabilities.ATOMICS_NOW);
            String refusal = "";
            try {
                query(general);
                query(atomics);
            } catch (NativeCallException otherFamily) {
                refusal = otherFamily.getMessage();
            }
            boolean swaps =
                    (atomics.get(Capabilities.ATOMIC_OPERATIONS) & Capabilities.MASKED_SWAP) != 0
                            && (atomics.get(Capabilities.ATOMIC_SIZES) & Capabilities.EIGHT_BYTES)
                                    != 0;
            return new RdmaFacts(
                    name,
                    device.getString(RdmaStructs.DEVICE_FIRMWARE.at()),
                    RdmaStructs.DEVICE_MAX_QP.get(device),
                    RdmaStructs.DEVICE_MAX_QP_WR.get(device),
                    (int) RdmaStructs.DEVICE_PORTS.get(device),
                    signed(RdmaStructs.DEVICE_MAX_MR_BYTES.get(device)),
                    (int) RdmaStructs.DEVICE_MAX_ATOMICS_SENT.get(device),
                    (int) RdmaStructs.DEVICE_MAX_ATOMICS.get(device),
                    refusal,
                    swaps,
                    general.get(Capabilities.RELAXED_ORDERING_WRITE) != 0,
                    (int) general.get(Capabilities.COMPLETION_VERSION),
                    1L << general.get(Capabilities.LOG_DOORBELL_BYTES));
        }
    }

    private static long signed(long unsigned) {
        return unsigned < 0 ? Long.MAX_VALUE : unsigned;
    }

    private void query(Command command) {
        libraries.generalCommand.check(name, command.argumentsFor(context));
    }

    /** As the card's firmware knows the protection domain. */
    int domainNumber() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment described = describe(arena, RdmaStructs.OBJECT_PD, domain, DOMAIN_OBJECT);
            return (int) RdmaStructs.PD_NUMBER.get(described);
        }
    }

    /** What libmlx5 says of an object of libibverbs. */
    MemorySegment describe(Arena arena, RdmaStructs.Field field, MemorySegment object, long kind) {
        MemorySegment in = arena.allocate(RdmaStructs.OBJECT_BYTES, Long.BYTES);
        MemorySegment out = arena.allocate(RdmaStructs.OBJECT_OUT_BYTES, Long.BYTES);
        in.set(ValueLayout.ADDRESS, field.at(), object);
        in.set(ValueLayout.ADDRESS, field.at() + ValueLayout.ADDRESS.byteSize(), out);
        libraries.initObj.check(name, in, kind);
        return out;
    }

    /** What the card can do. */
    public RdmaFacts facts() {
        return facts;
    }

    /** As {@code mlx5_0}. */
    public String name() {
        return name;
    }

    /**
     * The present state of a port.
     *
     * @param port from 1
     */
    public RdmaPort port(int port) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attributes = arena.allocate(RdmaStructs.PORT_ATTR_BYTES, Long.BYTES);
            libraries.queryPort.check(name + ":" + port, context, (byte) port, attributes);
            int numGids = (int) RdmaStructs.PORT_GIDS.get(attributes);
            List<Gid> gids = new ArrayList<>();
            MemorySegment gid = arena.allocate(GID_BYTES, Long.BYTES);
            for (int idx = 0; idx < numGids; idx++) {
                try {
                    libraries.queryGid.check(name, context, (byte) port, idx, gid);
                    gids.add(Gid.of(idx, gid.toArray(ValueLayout.JAVA_BYTE)));
                } catch (NativeCallException empty) {
                    // A place of the table that holds no address.
                }
            }
            return new RdmaPort(
                    name,
                    port,
                    RdmaStructs.PORT_STATE.get(attributes) == RdmaPort.ACTIVE,
                    RdmaStructs.PORT_LINK_LAYER.get(attributes) == RdmaPort.ETHERNET,
                    (RdmaStructs.PORT_FLAGS.get(attributes) & RdmaPort.GLOBAL_HEADER_REQUIRED) != 0,
                    (int) RdmaStructs.PORT_LID.get(attributes),
                    (int) RdmaStructs.PORT_MTU.get(attributes),
                    RdmaStructs.PORT_MAX_MESSAGE.get(attributes),
                    gids);
        }
    }

    /**
     * Registers memory of the host, or of a GPU where the kernel's module nvidia-peermem is loaded,
     * for peers to write to. The card names it by its address here.
     *
     * @param relaxedOrdering whether writes to it may overtake each other on PCI
     */
    public MemoryRegion register(long address, long numBytes, boolean relaxedOrdering) {
        return new MemoryRegion(
                libraries,
                libraries.regMr.make(
                        name,
                        domain,
                        MemorySegment.ofAddress(address),
                        numBytes,
                        address,
                        access(relaxedOrdering)));
    }

    /**
     * Registers memory of a GPU by a dma-buf.
     *
     * @param descriptor of the dma-buf, which begins at {@code address}; may be closed afterwards
     */
    public MemoryRegion registerDmaBuf(
            long address, long numBytes, int descriptor, boolean relaxedOrdering) {
        return new MemoryRegion(
                libraries,
                libraries.regDmabufMr.make(
                        name, domain, 0L, numBytes, address, descriptor, access(relaxedOrdering)));
    }

    private static int access(boolean relaxedOrdering) {
        int access = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC;
        return relaxedOrdering ? access | RELAXED_ORDERING : access;
    }

    /** The number of the device's first event queue, which completion queues must name. */
    int eventQueue() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment number = arena.allocate(ValueLayout.JAVA_INT);
            libraries.queryEqn.check(name, context, 0, number);
            return number.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /** Makes an object by a command, whose answer then has its number. */
    MemorySegment create(String what, Command command) {
        try {
            return libraries.createObject.make(what, command.argumentsFor(context));
        } catch (NativeCallException refused) {
            throw refused(refused, what, command);
        }
    }

    /** Changes an object by a command. */
    void modify(String what, MemorySegment object, Command command) {
        try {
            libraries.modifyObject.check(what, command.argumentsFor(object));
        } catch (NativeCallException refused) {
            throw refused(refused, what, command);
        }
    }

    private NativeCallException refused(NativeCallException e, String what, Command command) {
        return !command.isRefused()
                ? e
                : new NativeCallException(
                        e.call(), e.code(), command.refusal(), what + " of " + name, false);
    }

    void destroy(MemorySegment object) {
        libraries.destroyObject.call(object);
    }

    MemorySegment domain() {
        return domain;
    }

    MemorySegment context() {
        return context;
    }

    RdmaLibraries libraries() {
        return libraries;
    }

    @Override
    public void close() {
        libraries.deallocPd.call(domain);
        libraries.closeDevice.call(context);
    }
}
