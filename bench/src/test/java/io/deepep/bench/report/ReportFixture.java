package io.deepep.bench.report;

import io.deepep.bench.CommandLines;
import java.io.IOException;
import java.nio.file.Path;
import jdk.jfr.Event;
import jdk.jfr.Recording;

/** Makes the records and the page that the tests look at. */
final class ReportFixture {
    /** The records of a run on GPUs, with several numbers of multiprocessors. */
    static final Path GPU_RECORDS =
            Path.of("../docs/measurements/2026-11-21-normal-4xh200-buffer/4096-tokens.json");

    static final int NUM_RANKS = 4;
    static final int NUM_EXPERTS = 8;

    private ReportFixture() {}

    /** A small bench on the host: host.json and host.jfr in {@code folder}. */
    static void record(Path folder) {
        CommandLines.runLine(
                        "bench normal --backend host --num-tokens 6 --hidden 256 --num-topk 2"
                                + " --warmups 1 --repeats 3 --ranks "
                                + NUM_RANKS
                                + " --num-experts "
                                + NUM_EXPERTS
                                + " --json "
                                + folder.resolve("host.json")
                                + " --jfr "
                                + folder.resolve("host.jfr"))
                .requirePassed();
    }

    /** A flight recording of these events. */
    static Path recording(Path file, Event... events) throws IOException {
        try (Recording recording = new Recording()) {
            for (Event event : events) {
                recording.enable(event.getClass()).withoutThreshold();
            }
            recording.start();
            for (Event event : events) {
                event.commit();
            }
            recording.stop();
            recording.dump(file);
        }
        return file;
    }

    /** The page about that run and one on GPUs, and its plots. */
    static void report(Path folder) {
        CommandLines.run(
                        "report",
                        GPU_RECORDS,
                        folder.resolve("host.json"),
                        folder.resolve("host.jfr"),
                        "--out",
                        folder.resolve("report"))
                .requirePassed();
    }
}
