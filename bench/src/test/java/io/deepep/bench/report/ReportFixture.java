package io.deepep.bench.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Runs commands, and makes the records and the page that the tests look at. */
final class ReportFixture {
    /** The records of a run on GPUs, with several numbers of multiprocessors. */
    static final Path GPU_RECORDS =
            Path.of("../docs/measurements/2026-11-21-normal-4xh200-buffer/4096-tokens.json");

    static final int NUM_RANKS = 4;
    static final int NUM_EXPERTS = 8;

    private ReportFixture() {}

    /** What a command printed, and how it ended. */
    record Outcome(int exitCode, String out, String err) {
        Outcome requirePassed() {
            assertThat(err).isEmpty();
            assertThat(exitCode).isZero();
            return this;
        }
    }

    static Outcome run(Object... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        List<String> words = new ArrayList<>();
        for (Object argument : arguments) {
            words.add(argument.toString());
        }
        int exitCode =
                Main.run(words.toArray(String[]::new), new PrintWriter(out), new PrintWriter(err));
        return new Outcome(exitCode, out.toString(), err.toString());
    }

    /** A small bench on the host: host.json and host.jfr in {@code folder}. */
    static void record(Path folder) {
        run(
                        "bench",
                        "normal",
                        "--backend",
                        "host",
                        "--ranks",
                        NUM_RANKS,
                        "--num-tokens",
                        6,
                        "--hidden",
                        256,
                        "--num-topk",
                        2,
                        "--num-experts",
                        NUM_EXPERTS,
                        "--warmups",
                        1,
                        "--repeats",
                        3,
                        "--json",
                        folder.resolve("host.json"),
                        "--jfr",
                        folder.resolve("host.jfr"))
                .requirePassed();
    }

    /** The page about that run and one on GPUs, and its plots. */
    static void report(Path folder) {
        run(
                        "report",
                        GPU_RECORDS,
                        folder.resolve("host.json"),
                        folder.resolve("host.jfr"),
                        "--out",
                        folder.resolve("report"))
                .requirePassed();
    }
}
