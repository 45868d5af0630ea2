package io.deepep.bench.measure;

import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** How often to measure, and where to write. */
public class BenchOptions {
    private static final int MOST_RUNS = 1_000_000;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Also writes the records, one per operation, as a JSON array.")
    private Path json;

    @Option(
            names = "--warmups",
            paramLabel = "N",
            description =
                    "Runs of each operation that are not measured (default: ${DEFAULT-VALUE}).")
    private int warmups = 10;

    @Option(
            names = "--repeats",
            paramLabel = "N",
            description = "Measured runs of each operation (default: ${DEFAULT-VALUE}).")
    private int repeats = 50;

    /**
     * Checks the options.
     *
     * @throws UsageException with the first that cannot be used
     */
    public void validate() {
        UsageException.requireIn("--warmups", warmups, 0, MOST_RUNS);
        UsageException.requireIn("--repeats", repeats, 1, MOST_RUNS);
        OutputFile.require("--json", json);
    }

    /** The file, or null. */
    public final Path json() {
        return json;
    }

    /** Runs that are not measured. */
    public final int warmups() {
        return warmups;
    }

    /** Runs that are. */
    public final int repeats() {
        return repeats;
    }
}
