package io.deepep.bench.launch;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** One rank's process, whose lines are printed behind its number. */
final class RankProcess {
    private static final File NO_INPUT = new File("/dev/null");

    private final int rank;
    private final Process process;
    private final List<Thread> pumps;

    private RankProcess(int rank, Process process, List<Thread> pumps) {
        this.rank = rank;
        this.process = process;
        this.pumps = pumps;
    }

    /**
     * Starts a command.
     *
     * @throws IOException if it cannot be started
     */
    static RankProcess start(
            int rank,
            List<String> command,
            RankVariables variables,
            PrintWriter out,
            PrintWriter err)
            throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectInput(NO_INPUT);
        variables.writeTo(builder.environment(), rank);
        Process process = builder.start();
        String prefix = "[" + rank + "] ";
        return new RankProcess(
                rank,
                process,
                List.of(
                        pump(process.inputReader(StandardCharsets.UTF_8), prefix, out),
                        pump(process.errorReader(StandardCharsets.UTF_8), prefix, err)));
    }

    private static Thread pump(BufferedReader lines, String prefix, PrintWriter to) {
        return Thread.ofVirtual()
                .start(
                        () -> {
                            try (lines) {
                                for (String line = lines.readLine();
                                        line != null;
                                        line = lines.readLine()) {
                                    to.println(prefix + line);
                                }
                            } catch (IOException ended) {
                                // The process was stopped while it wrote.
                                to.flush();
                            }
                        });
    }

    int rank() {
        return rank;
    }

    /** Completes when the process has ended. */
    CompletableFuture<RankProcess> ended() {
        return process.onExit().thenApply(ignored -> this);
    }

    /** What it ended with; of one that a signal ended, 128 and the signal's number. */
    int exitCode() {
        return process.exitValue();
    }

    /** Waits for its last lines. */
    void awaitOutput(Duration limit) throws InterruptedException {
        for (Thread pump : pumps) {
            pump.join(limit);
        }
    }

    /** Asks it, and what it has started, to end. */
    void terminate() {
        tree().forEach(ProcessHandle::destroy);
    }

    /** Ends it, and what it has started. */
    void kill() {
        tree().forEach(ProcessHandle::destroyForcibly);
    }

    private Stream<ProcessHandle> tree() {
        // A list, as ending the parent would hide its children.
        return Stream.concat(process.descendants(), Stream.of(process.toHandle()))
                .toList()
                .stream();
    }
}
