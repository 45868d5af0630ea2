package io.deepep.bench.launch;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Where the lines of a rank go: to the console, behind its number, and to a file of its own.
 *
 * @param console of the launcher
 * @param folder of this attempt's files; empty for none
 */
record RankOutput(Console console, Optional<Path> folder) {
    /**
     * For one attempt.
     *
     * @throws UsageException if the folder cannot be made
     */
    static RankOutput of(Console console, Optional<Path> logFolder, int attempt) {
        Optional<Path> folder = logFolder.map(all -> all.resolve("attempt-" + attempt));
        try {
            if (folder.isPresent()) {
                Files.createDirectories(folder.get());
            }
        } catch (IOException refused) {
            throw new UsageException("--log-dir: cannot make " + folder.get() + ": " + refused);
        }
        return new RankOutput(console, folder);
    }

    Thread pumpOut(int rank, BufferedReader lines) {
        return pump(lines, rank, "out", console.out());
    }

    Thread pumpErr(int rank, BufferedReader lines) {
        return pump(lines, rank, "err", console.err());
    }

    private Thread pump(BufferedReader lines, int rank, String kind, PrintWriter to) {
        String prefix = "[" + rank + "] ";
        return Thread.ofVirtual()
                .start(
                        () -> {
                            try (lines;
                                    PrintWriter file = file(rank, kind)) {
                                for (String line = lines.readLine();
                                        line != null;
                                        line = lines.readLine()) {
                                    to.println(prefix + line);
                                    file.println(line);
                                }
                            } catch (IOException ended) {
                                // The process was stopped while it wrote.
                                to.flush();
                            }
                        });
    }

    private PrintWriter file(int rank, String kind) throws IOException {
        return folder.isEmpty()
                ? new PrintWriter(java.io.Writer.nullWriter())
                : new PrintWriter(
                        Files.newBufferedWriter(folder.get().resolve("rank-" + rank + "." + kind)),
                        true);
    }
}
