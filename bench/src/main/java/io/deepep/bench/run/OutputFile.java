package io.deepep.bench.run;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Files that options name for results. */
public final class OutputFile {
    private OutputFile() {}

    /**
     * Refuses what cannot be written, before a command works for an hour to fill it.
     *
     * @param option its name, as {@code --json}
     * @param file what the user gave, or null
     * @throws UsageException if its folder is not there, or it is a folder itself
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
    }

    /** What to say when it could not be written after all, as on a full disk. */
    public static UsageException unwritable(String option, Path file, IOException why) {
        return new UsageException(option + ": cannot write " + file + ": " + reason(why));
    }

    /** The message of a file system's exception may be no more than the file again. */
    private static String reason(IOException why) {
        if (why instanceof FileSystemException refused) {
            return refused.getReason() != null
                    ? refused.getReason()
                    : refused.getClass().getSimpleName();
        }
        return why.getMessage();
    }
}
