package io.deepep.communicator;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Set;

/**
 * Secrets in files that only one user reads. A file that others could have written or can read is
 * refused, and so is one behind a link, which may lead anywhere tomorrow.
 */
final class SecretFile {
    static final String CURE =
            "; write openssl rand -hex 32 into a file of mode 600 and set DEEPEP_SECRET_FILE to it on"
                    + " every rank";

    private static final int SECRET_BYTES = 32;
    private static final int MAX_FILE_BYTES = 4096;
    private static final int ROOT = 0;
    private static final Path PROCESS = Path.of("/proc/self");
    private static final Set<PosixFilePermission> OWNER_ALONE =
            PosixFilePermissions.fromString("rwx------");
    private static final SecureRandom RANDOM = new SecureRandom();

    private SecretFile() {}

    /**
     * The secret in {@code file}, without blanks around it.
     *
     * @param name of the file, for messages
     * @throws IllegalArgumentException if there is none, or if it is not safe there
     */
    static String read(String name, String file) {
        int user = user(PROCESS, Path.of(System.getProperty("java.io.tmpdir")));
        try {
            return read(name, Path.of(file), user);
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException(
                    name + " cannot be read (" + unreadable + ")" + CURE, unreadable);
        }
    }

    private static String read(String name, Path file, int user) throws IOException {
        requirePrivate(name, file, user, true);
        Object opened = key(file);
        ByteBuffer bytes = ByteBuffer.allocate(MAX_FILE_BYTES);
        try (SeekableByteChannel channel =
                Files.newByteChannel(file, Set.of(StandardOpenOption.READ, NOFOLLOW_LINKS))) {
            while (bytes.hasRemaining() && channel.read(bytes) >= 0) {
                // Until the end, or enough.
            }
        }
        if (!opened.equals(key(file))) {
            throw new IOException("it was replaced while it was read");
        }
        String secret =
                new String(bytes.array(), 0, bytes.position(), StandardCharsets.UTF_8).strip();
        if (secret.isEmpty()) {
            throw new IllegalArgumentException(name + " is empty" + CURE);
        }
        return secret;
    }

    private static Object key(Path file) throws IOException {
        return attributes(file).fileKey();
    }

    private static PosixFileAttributes attributes(Path file) throws IOException {
        return Files.readAttributes(file, PosixFileAttributes.class, NOFOLLOW_LINKS);
    }

    private static int uid(Path file, LinkOption... options) throws IOException {
        return (Integer) Files.getAttribute(file, "unix:uid", options);
    }

    /**
     * The number of this user: the owner of {@code process}, or of a file that is made in {@code
     * temporary} where there is no such folder.
     */
    static int user(Path process, Path temporary) {
        try {
            if (Files.exists(process)) {
                return uid(process); // behind a link, which is root's
            }
            Path probe = Files.createTempFile(temporary, "deepep-", ".uid");
            try {
                return uid(probe);
            } finally {
                Files.delete(probe);
            }
        } catch (IOException unknown) {
            throw new IllegalArgumentException(
                    ("the user id of this process cannot be determined: there is no %s, and no file can be made in %s"
                                    + " (%s); set java.io.tmpdir to a folder that this user can write")
                            .formatted(process, temporary, unknown),
                    unknown);
        }
    }

    private static void requirePrivate(String name, Path path, int user, boolean isFile)
            throws IOException {
        PosixFileAttributes attributes = attributes(path);
        if (isFile ? !attributes.isRegularFile() : !attributes.isDirectory()) {
            throw new IllegalArgumentException(
                    "%s is %s, not a %s%s"
                            .formatted(
                                    name,
                                    attributes.isSymbolicLink() ? "a link" : "of another kind",
                                    isFile ? "file" : "folder",
                                    CURE));
        }
        int owner = uid(path, NOFOLLOW_LINKS);
        if (owner != user && owner != ROOT) {
            throw new IllegalArgumentException(
                    name + " belongs to user " + owner + ", not to user " + user + CURE);
        }
        if (!OWNER_ALONE.containsAll(attributes.permissions())) {
            throw new IllegalArgumentException(
                    ("%s has the permissions %s, so that others can read or change it; chmod %s it, and if"
                                    + " others may have seen it, put a new secret there")
                            .formatted(
                                    name,
                                    PosixFilePermissions.toString(attributes.permissions()),
                                    isFile ? "600" : "700"));
        }
    }

    /**
     * The secret of this user's groups on this host; made, once, by whoever needs it first.
     *
     * @throws IllegalArgumentException if somebody else holds its place
     */
    static String ofThisUser() {
        return ofThisUser(Path.of(System.getProperty("java.io.tmpdir")));
    }

    static String ofThisUser(Path temporary) {
        try {
            // Written first and named afterwards, so that nobody reads half of it.
            Path fresh = Files.createTempFile(temporary, "deepep-", ".secret");
            try {
                Files.writeString(fresh, random());
                int user = uid(fresh, NOFOLLOW_LINKS);
                Path folder = temporary.resolve("deepep-" + user);
                createIfAbsent(
                        () ->
                                Files.createDirectory(
                                        folder, PosixFilePermissions.asFileAttribute(OWNER_ALONE)));
                requirePrivate(folder.toString(), folder, user, false);
                Path file = folder.resolve("secret");
                createIfAbsent(() -> Files.createLink(file, fresh));
                return read(file.toString(), file, user);
            } finally {
                Files.delete(fresh);
            }
        } catch (IOException failure) {
            throw new IllegalArgumentException(
                    ("neither DEEPEP_SECRET_FILE nor DEEPEP_SECRET is set, and no secret can be kept in %s"
                                    + " (%s)%s")
                            .formatted(temporary, failure, CURE),
                    failure);
        }
    }

    @FunctionalInterface
    private interface Creation {
        void create() throws IOException;
    }

    private static void createIfAbsent(Creation creation) throws IOException {
        try {
            creation.create();
        } catch (FileAlreadyExistsException there) {
            // Of an earlier group, or of another rank that was faster.
        }
    }

    private static String random() {
        byte[] secret = new byte[SECRET_BYTES];
        RANDOM.nextBytes(secret);
        return HexFormat.of().formatHex(secret);
    }
}
