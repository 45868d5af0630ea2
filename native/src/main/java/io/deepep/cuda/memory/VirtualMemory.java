package io.deepep.cuda.memory;

import static io.deepep.cuda.driver.CuStructs.offset;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.cuda.driver.CuStructs;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Undo;
import io.deepep.spi.posix.PosixFd;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.function.LongSupplier;

/**
 * Device memory by the driver's virtual memory management: for where CUDA IPC is not available. It
 * can be exported as a file descriptor to processes of this host, or as a fabric handle to those of
 * its NVLink domain. {@link PeerAccess} does not concern it: other GPUs of this process get access
 * by {@link #allowAccess}.
 */
public final class VirtualMemory extends CudaMemory {
    /** How the memory can be handed to other processes. */
    public enum Export {
        /** Not at all. */
        NONE(0),
        /** As a POSIX file descriptor. */
        POSIX_FD(1),
        /** As a handle for processes of all hosts of the NVLink domain. */
        FABRIC(8);

        private final int handleType;

        Export(int handleType) {
            this.handleType = handleType;
        }
    }

    /** Of a fabric handle. */
    public static final int FABRIC_BYTES = 64;

    private static final String FABRIC_CURE =
            "set up nvidia-imex on every host of the domain, and an IMEX channel that the process may open"
                    + " (/dev/nvidia-caps-imex-channels/channel0); or give ranksPerNode, so that no node is larger"
                    + " than a host";

    private static final int ATTRIBUTE_RDMA_WITH_VMM = 110;
    private static final int ATTRIBUTE_FABRIC = 128;
    private static final int ALLOCATION_PINNED = 1;
    private static final int LOCATION_DEVICE = 1;
    private static final int ACCESS_READ_WRITE = 3;
    private static final int GRANULARITY_RECOMMENDED = 1;

    private static final CuCall GRANULARITY =
            CuCall.of("cuMemGetAllocationGranularity", ADDRESS, ADDRESS, JAVA_INT);
    private static final CuCall CREATE =
            CuCall.of("cuMemCreate", ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final CuCall RELEASE = CuCall.of("cuMemRelease", JAVA_LONG);
    private static final CuCall RESERVE =
            CuCall.of("cuMemAddressReserve", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final CuCall ADDRESS_FREE = CuCall.of("cuMemAddressFree", JAVA_LONG, JAVA_LONG);
    private static final CuCall MAP =
            CuCall.of("cuMemMap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final CuCall UNMAP = CuCall.of("cuMemUnmap", JAVA_LONG, JAVA_LONG);
    private static final CuCall SET_ACCESS =
            CuCall.of("cuMemSetAccess", JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final CuCall EXPORT =
            CuCall.of("cuMemExportToShareableHandle", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_LONG);
    private static final CuCall IMPORT =
            CuCall.of("cuMemImportFromShareableHandle", ADDRESS, ADDRESS, JAVA_INT);

    private long handle;

    /** False after a replacement that failed, if the memory could not be mapped again either. */
    private boolean mapped = true;

    private final long mappedBytes;
    private final Export export;

    /** GPUs that have been given access, by their numbers; this one has it from the start. */
    private final BitSet reachableBy = new BitSet();

    private VirtualMemory(
            CudaContext context,
            long address,
            long numBytes,
            long handle,
            long mappedBytes,
            Export export) {
        super(context, address, numBytes);
        this.handle = handle;
        this.mappedBytes = mappedBytes;
        this.export = export;
        reachableBy.set(context.cudaDevice().ordinal());
    }

    /**
     * Allocates and maps device memory; the size is rounded up to the driver's granularity (2 MiB).
     *
     * @throws DeepEpUnavailableException if there is too little, or the GPU cannot export memory
     *     that way
     */
    public static VirtualMemory allocate(CudaContext context, long numBytes, Export export) {
        checkSize(numBytes);
        checkSupported(context.cudaDevice(), export);
        context.makeCurrent();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment properties = properties(arena, context.cudaDevice(), export);
            long mappedBytes = roundUp(numBytes, properties);
            long handle;
            try {
                handle = CREATE.ask(mappedBytes, properties, 0);
            } catch (NativeCallException refused) {
                throw export == Export.FABRIC && refused.code() != CuError.OUT_OF_MEMORY
                        ? explainFabric(refused)
                        : explain(refused, context, mappedBytes);
            }
            return map(context, numBytes, handle, mappedBytes, export);
        }
    }

    /**
     * Maps memory that another process allocated with {@link Export#POSIX_FD}.
     *
     * @param fd a descriptor of this process, such as from {@link PosixFd#fetch}; it may be closed
     *     afterwards
     * @param numBytes the size as it was asked for there
     */
    public static VirtualMemory importPosixFd(CudaContext context, int fd, long numBytes) {
        return map(context, numBytes, Export.POSIX_FD, () -> importHandle(fd));
    }

    /** The descriptor travels in the pointer argument itself. */
    private static long importHandle(int fd) {
        return IMPORT.ask(MemorySegment.ofAddress(fd), Export.POSIX_FD.handleType);
    }

    /**
     * Maps memory of the same size that another process allocated in the place of this one's, which
     * is given up. Kernels find it at the address that they have; none may be using it meanwhile.
     *
     * @param fd as for {@link #importPosixFd}
     */
    public void replaceBy(int fd) {
        context().makeCurrent();
        replaceByHandle(importHandle(fd));
    }

    /**
     * The same for memory of another host.
     *
     * @param fabricHandle as for {@link #importFabric}
     */
    public void replaceBy(byte[] fabricHandle) {
        context().makeCurrent();
        replaceByHandle(importHandle(fabricHandle));
    }

    private void replaceByHandle(long next) {
        long old = handle;
        try (Undo made = new Undo()) {
            made.made(next, RELEASE::call);
            unmap(address());
            made.made(old, this::mapAt);
            mapAt(next);
            made.forget();
        }
        handle = next;
        RELEASE.call(old);
    }

    private void mapAt(long itsHandle) {
        MAP.invoke(address(), mappedBytes, 0, itsHandle, 0);
        mapped = true;
        try {
            reachableBy.stream()
                    .forEach(gpu -> setAccess(address(), mappedBytes, CudaDevice.of(gpu)));
        } catch (RuntimeException | Error refused) {
            unmap(address());
            throw refused;
        }
    }

    private void unmap(long address) {
        UNMAP.call(address, mappedBytes);
        mapped = false;
    }

    /**
     * Maps memory that a process of the same NVLink domain allocated with {@link Export#FABRIC}.
     *
     * @param fabricHandle what {@link #exportFabric} gave there
     * @param numBytes the size as it was asked for there
     * @throws DeepEpUnavailableException if this process may not use it
     */
    public static VirtualMemory importFabric(
            CudaContext context, byte[] fabricHandle, long numBytes) {
        return map(context, numBytes, Export.FABRIC, () -> importHandle(fabricHandle));
    }

    private static VirtualMemory map(
            CudaContext context, long numBytes, Export export, LongSupplier handle) {
        checkSize(numBytes);
        context.makeCurrent();
        try (Arena arena = Arena.ofConfined()) {
            long mappedBytes = roundUp(numBytes, properties(arena, context.cudaDevice(), export));
            return map(context, numBytes, handle.getAsLong(), mappedBytes, export);
        }
    }

    private static long importHandle(byte[] fabricHandle) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment given = arena.allocateFrom(JAVA_BYTE, fabricHandle);
            return IMPORT.ask(given, Export.FABRIC.handleType);
        } catch (NativeCallException refused) {
            throw explainFabric(refused);
        }
    }

    /** Memory that is short is no matter of the fabric. */
    private static RuntimeException explainFabric(NativeCallException refused) {
        return refused.code() == CuError.OUT_OF_MEMORY
                ? refused
                : new DeepEpUnavailableException(
                        "memory cannot be shared across the hosts of the NVLink domain: "
                                + refused.getMessage(),
                        FABRIC_CURE,
                        refused);
    }

    /** Gives the mapping an address; what was done is undone if a step fails. */
    private static VirtualMemory map(
            CudaContext context, long numBytes, long handle, long mappedBytes, Export export) {
        try (Undo made = new Undo()) {
            made.made(handle, RELEASE::call);
            long address =
                    made.made(
                            RESERVE.ask(mappedBytes, 0, 0, 0),
                            reserved -> ADDRESS_FREE.call(reserved, mappedBytes));
            MAP.invoke(address, mappedBytes, 0, handle, 0);
            made.made(address, mapped -> UNMAP.call(mapped, mappedBytes));
            setAccess(address, mappedBytes, context.cudaDevice());
            made.forget();
            return new VirtualMemory(context, address, numBytes, handle, mappedBytes, export);
        }
    }

    /**
     * Lets kernels of another GPU of this process read and write the memory. Any thread may ask,
     * and for several ranks on that GPU: the driver is asked once, because it refuses to be asked
     * for one GPU by two threads at a time.
     */
    public synchronized void allowAccess(CudaContext other) {
        int device = other.cudaDevice().ordinal();
        if (!reachableBy.get(device)) {
            context().makeCurrent();
            setAccess(address(), mappedBytes, other.cudaDevice());
            reachableBy.set(device);
        }
    }

    /**
     * A new descriptor that keeps the memory alive until {@link PosixFd#close}.
     *
     * @throws IllegalStateException if the memory was not allocated with {@link Export#POSIX_FD}
     */
    public int exportPosixFd() {
        requireExport(Export.POSIX_FD);
        return (int) EXPORT.ask(handle, Export.POSIX_FD.handleType, 0);
    }

    /**
     * What {@link #importFabric} takes, of {@value #FABRIC_BYTES} bytes, valid as long as the
     * memory is.
     *
     * @throws IllegalStateException if the memory was not allocated with {@link Export#FABRIC}
     */
    public byte[] exportFabric() {
        requireExport(Export.FABRIC);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(FABRIC_BYTES, Long.BYTES);
            EXPORT.invoke(out, handle, Export.FABRIC.handleType, 0);
            return out.toArray(JAVA_BYTE);
        } catch (NativeCallException refused) {
            throw explainFabric(refused);
        }
    }

    private void requireExport(Export wanted) {
        if (export != wanted) {
            throw new IllegalStateException(
                    "memory allocated with export=" + export + " cannot be exported as " + wanted);
        }
        context().makeCurrent();
    }

    @Override
    void release(long address) {
        if (mapped) {
            unmap(address);
        }
        ADDRESS_FREE.call(address, mappedBytes);
        RELEASE.call(handle);
    }

    private static void checkSupported(CudaDevice device, Export export) {
        boolean supported =
                switch (export) {
                    case NONE -> true;
                    case POSIX_FD -> device.supportsPosixFd();
                    case FABRIC -> device.attribute(ATTRIBUTE_FABRIC) != 0;
                };
        if (!supported) {
            throw new DeepEpUnavailableException(
                    device.device() + " (" + device.name() + ") cannot export memory as " + export,
                    export == Export.FABRIC
                            ? FABRIC_CURE
                            : "use CUDA IPC between the processes of one host");
        }
    }

    private static MemorySegment properties(Arena arena, CudaDevice device, Export export) {
        var layout = CuStructs.MEM_ALLOCATION_PROP;
        MemorySegment properties = arena.allocate(layout);
        properties.set(JAVA_INT, offset(layout, "type"), ALLOCATION_PINNED);
        properties.set(JAVA_INT, offset(layout, "requestedHandleTypes"), export.handleType);
        properties.set(JAVA_INT, offset(layout, "location", "type"), LOCATION_DEVICE);
        properties.set(JAVA_INT, offset(layout, "location", "id"), device.ordinal());
        // So that a NIC may reach it, where the platform lets one.
        boolean rdma = device.attribute(ATTRIBUTE_RDMA_WITH_VMM) != 0;
        properties.set(JAVA_BYTE, offset(layout, "gpuDirectRdmaCapable"), (byte) (rdma ? 1 : 0));
        return properties;
    }

    private static long roundUp(long numBytes, MemorySegment properties) {
        long granularity = GRANULARITY.ask(properties, GRANULARITY_RECOMMENDED);
        return Math.ceilDiv(numBytes, granularity) * granularity;
    }

    private static void setAccess(long address, long mappedBytes, CudaDevice device) {
        try (Arena arena = Arena.ofConfined()) {
            var layout = CuStructs.MEM_ACCESS_DESC;
            MemorySegment access = arena.allocate(layout);
            access.set(JAVA_INT, offset(layout, "location", "type"), LOCATION_DEVICE);
            access.set(JAVA_INT, offset(layout, "location", "id"), device.ordinal());
            access.set(JAVA_INT, offset(layout, "flags"), ACCESS_READ_WRITE);
            SET_ACCESS.invoke(address, mappedBytes, access, 1);
        }
    }
}
