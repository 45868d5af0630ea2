package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.measure.Build;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code deepep report}: a page and plots of what runs recorded. */
@Command(
        name = "report",
        // A subcommand needs no --out, so picocli cannot show that records do.
        customSynopsis = {
            "deepep report [--compare] [--warmups=N] --out=DIR RECORDS...",
            "deepep report readme [OPTIONS]"
        },
        description = {
            "Makes an HTML page and SVG files from the records of runs: time by operation, share of the ceiling,"
                    + " traffic matrix, who waited for whom, expert load.",
            "deepep report readme updates the tables and plots of README and docs."
        },
        mixinStandardHelpOptions = true)
public final class ReportCommand implements Runnable {
    private static final int MOST_WARMUPS = 1_000_000;

    private final Console console;

    @Parameters(
            paramLabel = "RECORDS",
            arity = "0..*",
            description =
                    "Files that bench wrote with --json (any name), times of layers (see the guide for"
                            + " engines), and recordings that test or bench wrote with --jfr (*.jfr,"
                            + " *.jfr.rankN). All recordings must belong to one job.")
    private List<Path> files = List.of();

    @Option(
            names = "--warmups",
            paramLabel = "N",
            description =
                    "Leaves the first N calls of each operation and rank, but at most half, out of the"
                            + " times of recordings (default: ${DEFAULT-VALUE}).")
    private int warmups = 5;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description =
                    "Folder for report.html, the SVGs, and timeline.json of recordings (open it"
                            + " at ui.perfetto.dev); created if necessary. Needed with RECORDS.")
    private Path out;

    @Option(
            names = "--compare",
            description =
                    "Also compares the second of two runs with the first, operation by operation.")
    private boolean compare;

    private ReportCommand(Console console) {
        this.console = console;
    }

    /** The command with its subcommand. */
    public static CommandLine create(Console console) {
        CommandLine line = new CommandLine(new ReportCommand(console));
        line.addSubcommand(new ReadmeCommand(console));
        return line;
    }

    @Override
    public void run() {
        // A subcommand needs neither, so picocli cannot ask for them.
        if (files.isEmpty() || out == null) {
            throw new UsageException(
                    (files.isEmpty() ? "RECORDS are missing" : "--out is missing")
                            + "; give RECORDS and --out=DIR, or a subcommand: readme; see deepep report --help");
        }
        UsageException.requireIn("--warmups", warmups, 0, MOST_WARMUPS);
        if (Files.exists(out) && !Files.isDirectory(out)) {
            throw new UsageException("--out=" + out + " is a file; name a folder");
        }
        List<BenchRun> runs = new ArrayList<>();
        List<DecodeRun> loops = new ArrayList<>();
        List<Path> layers = new ArrayList<>();
        for (Path file : files) {
            if (!Files.isRegularFile(file)) {
                throw new UsageException("there is no file " + file);
            }
        }
        List<Path> recordings = files.stream().filter(ReportCommand::isRecording).toList();
        List<Path> records = files.stream().filter(file -> !isRecording(file)).toList();
        for (Path file : records) {
            List<JsonNode> nodes = JsonRecords.parse(file);
            if (JsonRecords.have(DecodeRun.MARK, nodes)) {
                loops.add(DecodeRun.read(file, records));
            } else if (JsonRecords.have(LayerRun.MARK, nodes)) {
                layers.add(file);
            } else {
                runs.add(BenchRun.read(file, records));
            }
        }
        if (compare && runs.size() != 2) {
            throw new UsageException(
                    "--compare needs the records of two runs, and there are " + runs.size());
        }
        FlightSummary flight = flight(recordings);
        ReportPage page = page(runs, loops, LayerRun.read(layers, records), flight);
        Path html = makeFolder();
        write(html, page);
        if (!flight.timeline.isEmpty()) {
            OutputFile.write("--out", out.resolve("timeline.json"), flight.timeline.json());
        }
        console.line("%s (%d sections, %d plots)", html, page.sections.size(), page.plots().size());
    }

    private static boolean isRecording(Path file) {
        return file.getFileName().toString().matches(".*\\.jfr(\\.rank\\d+)?");
    }

    private FlightSummary flight(List<Path> recordings) {
        FlightSummary flight = new FlightSummary(warmups);
        recordings.forEach(flight::add);
        if (!recordings.isEmpty() && flight.calls.isEmpty()) {
            throw new UsageException(
                    recordings
                            + " have no io.deepep.Operation events; record with --jfr, or with"
                            + " io.deepep.Operation#enabled=true");
        }
        return flight;
    }

    private ReportPage page(
            List<BenchRun> runs,
            List<DecodeRun> loops,
            List<LayerRun> layers,
            FlightSummary flight) {
        Build build = Build.current();
        ReportPage page =
                new ReportPage(
                        "deepep report",
                        "Made by deepep " + build.version() + ", commit " + build.commit());
        Glance.add(page, runs, flight);
        if (compare) {
            RunComparison.add(page, runs.getFirst(), runs.getLast());
        }
        runs.forEach(run -> RunReport.add(page, run));
        loops.forEach(loop -> loop.addTo(page));
        layers.forEach(layer -> layer.addTo(page));
        if (!flight.calls.isEmpty()) {
            FlightReport.add(page, flight);
        }
        return page;
    }

    /** Where the page goes, which can be written. */
    private Path makeFolder() {
        Path html = out.resolve("report.html");
        try {
            Files.createDirectories(out);
        } catch (IOException refused) {
            throw OutputFile.unwritable("--out", out, refused);
        }
        OutputFile.require("--out", html);
        return html;
    }

    private void write(Path html, ReportPage page) {
        OutputFile.write("--out", html, page.html());
        for (ReportPage.Plot plot : page.plots()) {
            OutputFile.write("--out", out.resolve(plot.file()), plot.svg());
        }
    }
}
