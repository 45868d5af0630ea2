package io.deepep.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * The memory of one rank as a file in a memory file system, for the processes of the host to map.
 * Pages are taken when they are touched, untouched ones read as zero. The memory goes with its last
 * mapping, however the processes end, once the name is gone.
 *
 * <pre>
 *  0        nvlBytes, rounded up to a page
 *  +--------+--------+
 *  |  NVL   |  RDMA  |
 *  +--------+--------+
 * </pre>
 */
record SharedFile(Path path, long nvlBytes, long rdmaBytes) {
    private static final Path FOLDER = Path.of("/dev/shm");
    private static final long PAGE_BYTES = 4096;

    /** A new file for this user alone; the first mapping gives it its length. */
    static SharedFile create(long nvlBytes, long rdmaBytes) {
        var owner =
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
        try {
            return new SharedFile(
                    Files.createTempFile(FOLDER, "deepep-", null, owner), nvlBytes, rdmaBytes);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Touching a page for which there is no room would end the process. */
    void requireRoomFor(int numFiles) {
        long needed = Math.multiplyExact(rdmaOffset() + rdmaBytes, (long) numFiles);
        long usable = usableBytes();
        if (needed > usable) {
            throw new IllegalStateException(
                    FOLDER + " has room for " + usable + " bytes, all ranks need " + needed);
        }
    }

    private static long usableBytes() {
        try {
            return Files.getFileStore(FOLDER).getUsableSpace();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    MemorySegment mapNvl(Arena arena) {
        return map(0, nvlBytes, arena);
    }

    MemorySegment mapRdma(Arena arena) {
        return map(rdmaOffset(), rdmaBytes, arena);
    }

    private long rdmaOffset() {
        return Math.ceilDiv(nvlBytes, PAGE_BYTES) * PAGE_BYTES;
    }

    private MemorySegment map(long offset, long bytes, Arena arena) {
        try (FileChannel channel =
                FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(MapMode.READ_WRITE, offset, Math.max(bytes, 1), arena);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Takes the name away; mappings stay. */
    void unlink() {
        try {
            Files.deleteIfExists(path);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
