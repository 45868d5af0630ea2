package io.deepep.spi.posix;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Zeroed memory that the processes of a host can map: a Linux {@code memfd}, without a name in any
 * file system. Its pages are allocated at once, so that writing to it cannot fail later, and its
 * size is sealed. It is freed with its last descriptor and mapping, however the processes end.
 */
public final class SharedMemory implements AutoCloseable {
    private static final int O_RDWR = 02;
    private static final int O_NOCTTY = 0400;
    private static final int O_NONBLOCK = 04000;
    private static final int O_CLOEXEC = 02000000;
    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_SHARED_FIXED = 0x11;
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

    /** Allocated at once, between two checks of the available memory. */
    private static final long PIECE_BYTES = 64L << 20;

    private static final String CURE =
            "lower the limits of the buffer or the number of ranks on this host, or give it (or its"
                    + " container) more memory";

    private static final String CURE_OF_REFUSAL =
            "allow the call in the container's seccomp profile, raise the limits of open files and of"
                    + " file sizes (ulimit -n, ulimit -f), or run the ranks as threads of one process";

    private final int fd;
    private final long numBytes;
    private boolean closed;

    private SharedMemory(int fd, long numBytes) {
        this.fd = fd;
        this.numBytes = numBytes;
    }

    /** The unit of mappings: an offset into memory must be a multiple of it. */
    public static long pageBytes() {
        return Libc.get().getpagesize();
    }

    /**
     * Requires that {@code bytes} can be allocated and a sixteenth of the available memory remains.
     *
     * @param whose what the memory is for, as the beginning of the message
     * @throws DeepEpUnavailableException if they cannot
     */
    public static void requireRoom(long bytes, String whose) {
        long available = AvailableMemory.bytes();
        if (bytes > available - available / 16) {
            throw new DeepEpUnavailableException(
                    "%s need %s bytes of memory, but only %s are available"
                            .formatted(whose, bytes, available),
                    CURE);
        }
    }

    /**
     * Creates memory and allocates all of its pages.
     *
     * @param name its name in {@code /proc}, which {@link #open} checks
     * @throws DeepEpUnavailableException if there is not enough memory, or the system has no {@code
     *     memfd} or refuses it
     */
    public static SharedMemory create(String name, long numBytes) {
        try {
            return create(Libc.get(), name, numBytes);
        } catch (Libc.Failure refused) {
            throw new DeepEpUnavailableException(refused.getMessage(), CURE_OF_REFUSAL, refused);
        }
    }

    private static SharedMemory create(Libc libc, String name, long numBytes) {
        int fd = libc.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        SharedMemory memory = new SharedMemory(fd, numBytes);
        try {
            libc.ftruncate(fd, numBytes);
            memory.reserve(libc);
            libc.fcntl(fd, F_ADD_SEALS, SEALS);
            return memory;
        } catch (RuntimeException | Error failure) {
            memory.close();
            throw failure;
        }
    }

    /**
     * Allocates piece by piece, and stops unless the rest fits too: if several processes allocate
     * at the same time, one of them stops before all memory is used up.
     */
    private void reserve(Libc libc) {
        for (long taken = 0; taken < numBytes; taken += PIECE_BYTES) {
            long rest = numBytes - taken;
            requireRoom(rest, "the last " + rest + " of " + numBytes + " bytes that ranks share");
            long piece = Math.min(PIECE_BYTES, rest);
            try {
                libc.fallocate(fd, taken, piece);
            } catch (Libc.Failure failure) {
                if (failure.errno() != Libc.ENOMEM && failure.errno() != Libc.ENOSPC) {
                    throw failure;
                }
                throw new DeepEpUnavailableException(
                        "only %s of %s bytes that ranks share could be allocated: %s"
                                .formatted(taken, numBytes, failure.getMessage()),
                        CURE,
                        failure);
            }
        }
    }

    /**
     * Opens memory that another process (or this one) created and has not closed. The descriptor is
     * not trusted: it must be sealed memory of the given name and size, and of the same user, so
     * that no other file of the user can be put in its place, and none that shrinks later.
     *
     * @param pid the process, as it is numbered in this process's {@code /proc}
     * @param fd the descriptor in that process
     * @throws DeepEpUnavailableException if it is not such memory, or cannot be opened
     */
    public static SharedMemory open(long pid, int fd, String name, long numBytes) {
        Path there = Path.of("/proc", Long.toString(pid), "fd", Integer.toString(fd));
        requireName(there, name, there); // first, because opening some files has effects
        int own;
        try {
            own = Libc.get().open(there.toString(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        } catch (Libc.Failure failure) {
            throw refused(there, failure.getMessage(), failure);
        }
        SharedMemory memory = new SharedMemory(own, numBytes);
        try {
            memory.requireSound(there, name);
            return memory;
        } catch (RuntimeException | Error failure) {
            memory.close();
            throw failure;
        }
    }

    private void requireSound(Path there, String name) {
        requireName(path(), name, there);
        Libc libc = Libc.get();
        try {
            int owner = (int) Files.getAttribute(path(), "unix:uid");
            if (owner != libc.geteuid()) {
                throw refused(there, "it is of user " + owner, null);
            }
            int seals = libc.fcntl(fd, F_GET_SEALS, 0);
            if ((seals & SEALS) != SEALS) {
                throw refused(there, "it is not sealed (seals " + seals + ")", null);
            }
            long size = Files.size(path());
            if (size != numBytes) {
                throw refused(there, "it has " + size + " bytes instead of " + numBytes, null);
            }
        } catch (IOException | Libc.Failure failure) {
            throw refused(there, failure.toString(), failure);
        }
    }

    private static void requireName(Path link, String name, Path there) {
        try {
            String target = Files.readSymbolicLink(link).toString();
            if (!target.equals("/memfd:" + name + " (deleted)")) {
                throw refused(there, "it is not memory of this job, but " + target, null);
            }
        } catch (IOException failure) {
            throw refused(there, failure.toString(), failure);
        }
    }

    private static DeepEpUnavailableException refused(Path path, String why, Throwable cause) {
        return new DeepEpUnavailableException(
                path + " cannot be used as a peer's memory: " + why,
                "run the ranks of a host as one user in one PID namespace (containers: one for all"
                        + " ranks, or --pid shared)",
                cause);
    }

    /** The descriptor, for {@link #open} in other processes. */
    public int fd() {
        return fd;
    }

    /**
     * Maps a part of the memory until {@code arena} is closed, even after {@link #close}.
     *
     * @param offset bytes from the beginning
     */
    public MemorySegment map(long offset, long bytes, Arena arena) {
        if (offset < 0 || bytes < 0 || offset > numBytes - bytes) {
            throw new IllegalArgumentException(
                    "offset=" + offset + " with bytes=" + bytes + " is not within " + numBytes);
        }
        try (FileChannel channel =
                FileChannel.open(path(), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(MapMode.READ_WRITE, offset, bytes, arena);
        } catch (IOException failure) {
            throw new DeepEpUnavailableException(
                    "shared memory cannot be mapped: " + failure,
                    "raise the limit of open files (ulimit -n), or " + CURE,
                    failure);
        }
    }

    /**
     * Replaces a mapping of other memory by a part of this memory: accesses to {@code place} then
     * go to this memory, and the other memory is unmapped. No thread may access {@code place}
     * during the call.
     *
     * @param offset bytes from the beginning, a multiple of the page size
     * @param place what {@link #map} of the other memory returned, of the size of the part
     */
    public void mapOver(long offset, MemorySegment place) {
        if (place.byteSize() == 0) {
            return; // nothing is mapped there
        }
        if (!place.isMapped() || offset < 0 || offset > numBytes - place.byteSize()) {
            throw new IllegalArgumentException(
                    "offset=%s with %s is not within %s bytes, or that is not mapped"
                            .formatted(offset, place, numBytes));
        }
        try {
            Libc.get()
                    .mmap(
                            place.address(),
                            place.byteSize(),
                            PROT_READ_WRITE,
                            MAP_SHARED_FIXED,
                            fd,
                            offset);
        } catch (Libc.Failure failure) {
            throw new DeepEpUnavailableException(
                    "shared memory cannot be mapped: " + failure.getMessage(), CURE, failure);
        }
    }

    private Path path() {
        return Path.of("/proc/self/fd", Integer.toString(fd));
    }

    /** Closes the descriptor; mappings stay valid. Idempotent. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            PosixFd.close(fd);
        }
    }
}
