package io.deepep.bench.launch;

import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * The secret of a launch, in a file that only this user reads: the environment of a process is seen
 * by flight recordings and crash reports.
 *
 * @param file where it is, until {@link #close}
 */
record LaunchSecret(Path file) implements AutoCloseable {
    private static final int BYTES = 32;

    /** Makes a new one. */
    static LaunchSecret create() {
        byte[] secret = new byte[BYTES];
        new SecureRandom().nextBytes(secret);
        Path file = null;
        try {
            file = Files.createTempFile("deepep-launch-", ".secret"); // with mode 600
            Files.writeString(file, HexFormat.of().formatHex(secret));
            return new LaunchSecret(file.toAbsolutePath()); // a rank may be in another folder
        } catch (IOException failure) {
            if (file != null) {
                OutputFile.discard(file);
            }
            throw new UsageException(
                    ("launch: cannot keep a secret in %s (%s); make room there, choose another folder by"
                                    + " DEEPEP_JAVA_OPTS=-Djava.io.tmpdir=FOLDER, or raise the limits of open files and"
                                    + " file sizes (ulimit -n, ulimit -f)")
                            .formatted(System.getProperty("java.io.tmpdir"), failure));
        }
    }

    @Override
    public void close() {
        try {
            Files.deleteIfExists(file);
        } catch (IOException left) {
            file.toFile().deleteOnExit();
        }
    }
}
