package io.deepep.bench.launch;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Where the lines of a rank go: to the console, behind its number, and to files of its own.
 *
 * @param console of the launcher
 * @param rank whose lines they are
 * @param out the file of its standard output, which goes nowhere if none was asked for
 * @param err the file of its standard error
 */
record RankOutput(Console console, int rank, PrintWriter out, PrintWriter err) {
    /**
     * For the ranks of this host in one attempt, in order.
     *
     * @throws UsageException if a file cannot be written
     */
    static List<RankOutput> of(Console console, LaunchPlan plan, int attempt) {
        Optional<Path> folder = plan.logFolder().map(all -> all.resolve("attempt-" + attempt));
        try {
            if (folder.isPresent()) {
                Files.createDirectories(folder.get());
            }
        } catch (IOException refused) {
            throw OutputFile.failed("--log-dir: cannot make", folder.get(), refused);
        }
        return IntStream.range(plan.firstRank(), plan.firstRank() + plan.ranksPerNode())
                .mapToObj(
                        rank ->
                                new RankOutput(
                                        console,
                                        rank,
                                        file(folder, "rank-" + rank + ".out"),
                                        file(folder, "rank-" + rank + ".err")))
                .toList();
    }

    private static PrintWriter file(Optional<Path> folder, String name) {
        if (folder.isEmpty()) {
            return new PrintWriter(Writer.nullWriter());
        }
        Path file = folder.get().resolve(name);
        try {
            return new PrintWriter(Files.newBufferedWriter(file), true);
        } catch (IOException refused) {
            throw OutputFile.unwritable("--log-dir", file, refused);
        }
    }

    /** Sends both outputs of its process there, by threads that end with them. */
    List<Thread> pump(Process process) {
        return List.of(
                pump(process.inputReader(StandardCharsets.UTF_8), console.out(), out),
                pump(process.errorReader(StandardCharsets.UTF_8), console.err(), err));
    }

    private Thread pump(BufferedReader reader, PrintWriter to, PrintWriter file) {
        String prefix = "[" + rank + "] ";
        return Thread.ofPlatform()
                .daemon()
                .start(
                        () -> {
                            try (RankLines lines = new RankLines(reader);
                                    file) {
                                for (String line = lines.next();
                                        line != null;
                                        line = lines.next()) {
                                    to.println(prefix + line);
                                    file.println(line);
                                }
                                if (file.checkError()) {
                                    console.complain(
                                            "--log-dir: not all output of rank %s could be written; make room there"
                                                    .formatted(rank));
                                }
                            } catch (IOException ended) {
                                // The process was stopped while it wrote.
                                to.flush();
                            }
                        });
    }
}
