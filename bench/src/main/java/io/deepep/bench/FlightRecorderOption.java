package io.deepep.bench;

import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import jdk.jfr.Recording;
import picocli.CommandLine.Option;

/** Writes a flight recording of what a command runs, with all of the library's events. */
final class FlightRecorderOption {
    private static final List<String> EVENTS =
            List.of("io.deepep.Operation", "io.deepep.Peer", "io.deepep.ExpertLoad");

    @Option(
            names = "--jfr",
            paramLabel = "FILE",
            description =
                    "Also writes a flight recording of every call; deepep report reads it. Recording takes time, so do not"
                            + " quote times of such a run. Launched processes append .rankN.")
    private Path jfr;

    /**
     * Refuses a file that cannot be written.
     *
     * @throws UsageException if it cannot
     */
    void validate() {
        if (jfr != null) {
            OutputFile.require("--jfr", fileOfThisProcess());
            requireRoomForEvents();
        }
    }

    /** The flight recorder ends the JVM where it has none. */
    private static void requireRoomForEvents() {
        Path folder = Path.of(System.getProperty("java.io.tmpdir"));
        try {
            long process = ProcessHandle.current().pid();
            OutputFile.require("--jfr", folder.resolve("deepep-" + process + ".jfr"));
        } catch (UsageException refused) {
            throw new UsageException(
                    refused.getMessage()
                            + "; the flight recorder collects events there: make room, or choose another folder by"
                            + " DEEPEP_JAVA_OPTS=-Djava.io.tmpdir=FOLDER");
        }
    }

    /**
     * Runs {@code command}, recorded if that was asked for. A command that fails or is interrupted
     * leaves what was recorded until then; one that is refused leaves nothing.
     *
     * @throws UsageException if the file cannot be written
     */
    <T> T record(Supplier<T> command) {
        if (jfr == null) {
            return command.get();
        }
        Path file = fileOfThisProcess();
        boolean isNew = Files.notExists(file);
        try {
            return record(command, file);
        } catch (IOException unwritable) {
            throw discarded(isNew, file, OutputFile.unwritable("--jfr", file, unwritable));
        } catch (UsageException refused) {
            throw discarded(isNew, file, refused);
        }
    }

    private static <T> T record(Supplier<T> command, Path file) throws IOException {
        try (Recording recording = new Recording()) {
            EVENTS.forEach(recording::enable);
            // The flight recorder itself writes it when the process ends or the command fails.
            recording.setDestination(file);
            recording.setDumpOnExit(true);
            recording.start();
            T result = command.get();
            recording.setDestination(null); // it would only log that it cannot write
            recording.stop();
            recording.dump(file);
            return result;
        }
    }

    private static UsageException discarded(boolean isNew, Path file, UsageException refused) {
        if (isNew) {
            OutputFile.discard(file);
        }
        return refused;
    }

    private Path fileOfThisProcess() {
        return LaunchedGroup.processRank()
                .map(rank -> jfr.resolveSibling(jfr.getFileName() + ".rank" + rank))
                .orElse(jfr);
    }
}
