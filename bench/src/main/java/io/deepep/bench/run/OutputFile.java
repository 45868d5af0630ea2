package io.deepep.bench.run;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.DELETE_ON_CLOSE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/** Files that options name for results. */
public final class OutputFile {
    /** What a disk must have room for before a command starts: no record is larger. */
    private static final int PROBE_BYTES = 1 << 16;

    /** Whatever is written to this device fails, but that shows only then. */
    private static final Path FULL = Path.of("/dev/full");

    private OutputFile() {}

    /**
     * Refuses what cannot be written, before a command works for an hour to fill it. Leaves no
     * trace.
     *
     * @param option its name, as {@code --json}
     * @param file what the user gave, or null
     * @throws UsageException if its folder is not there, it is a folder itself, or may not or
     *     cannot be written
     */
    public static void require(String option, Path file) {
        if (file == null) {
            return;
        }
        if (Files.isDirectory(file)) {
            throw new UsageException(option + "=" + file + " is a folder; name a file in it");
        }
        Path folder = file.toAbsolutePath().getParent();
        if (!Files.isDirectory(folder)) {
            throw new UsageException(option + "=" + file + ": there is no folder " + folder);
        }
        try {
            probe(option, file);
        } catch (IOException refused) {
            throw unwritable(option, file, refused);
        }
    }

    /** Other ranks of the job may look at the same moment: what one finds may be their probe. */
    private static void probe(String option, Path file) throws IOException {
        BasicFileAttributes found;
        try {
            found = Files.readAttributes(file, BasicFileAttributes.class);
        } catch (NoSuchFileException absent) {
            if (Files.notExists(file, LinkOption.NOFOLLOW_LINKS)) {
                probeAbsent(file);
            } else if (Files.isSymbolicLink(file)) {
                require(option, file.resolveSibling(Files.readSymbolicLink(file)));
            }
            return;
        }
        if (found.isRegularFile()) {
            try {
                FileChannel.open(file, WRITE).close();
            } catch (NoSuchFileException wasProbe) {
                // So that rank could write it.
            }
        } else if (!Files.isWritable(file)) {
            throw new AccessDeniedException(file.toString());
        } else if (Files.exists(FULL) && Files.isSameFile(file, FULL)) {
            throw new FileSystemException(file.toString(), null, "No space left on device");
        }
    }

    private static void probeAbsent(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, CREATE_NEW, WRITE, DELETE_ON_CLOSE)) {
            channel.write(ByteBuffer.allocate(PROBE_BYTES));
        } catch (FileAlreadyExistsException isProbe) {
            // So that rank can write it.
        }
    }

    /**
     * Writes it whole, or leaves no file where there was none.
     *
     * @throws UsageException if it cannot be written
     */
    public static void write(String option, Path file, String content) {
        boolean isNew = Files.notExists(file, LinkOption.NOFOLLOW_LINKS);
        try {
            Files.writeString(file, content);
        } catch (IOException full) {
            if (isNew) {
                discard(file);
            }
            throw unwritable(option, file, full);
        }
    }

    /** Deletes a file that holds nothing of use, if it can. */
    public static void discard(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException kept) {
            // The complaint about what made it useless comes next.
        }
    }

    /** What to say when it could not be written after all, as on a full disk. */
    public static UsageException unwritable(String option, Path file, IOException why) {
        return failed(option + ": cannot write", file, why);
    }

    /** What to say when something could not be done with a file. */
    public static UsageException failed(String what, Path file, IOException why) {
        return new UsageException(what + " " + file + ": " + reason(why));
    }

    /** The message of a file system's exception may be no more than the file again. */
    private static String reason(IOException why) {
        if (why instanceof AccessDeniedException) {
            return "permission denied";
        }
        if (why instanceof FileSystemException refused) {
            return refused.getReason() != null
                    ? refused.getReason()
                    : refused.getClass().getSimpleName();
        }
        return why instanceof CharacterCodingException ? "it is not UTF-8" : why.getMessage();
    }
}
