package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code deepep report readme}: tables and plots of the documentation, from records. */
@Command(
        name = "readme",
        description = {
            "Updates every table and plot in README.md and docs/ between <!-- deepep:VIEW records=... --> and"
                    + " <!-- deepep:end -->.",
            "Records are paths under docs/measurements. Views: facts, times (sms=N or best), sweep,"
                    + " shapes (records= a folder, sms=), tokens (sms=, what=time or call), plot (sms=,"
                    + " file=, what=time or share), decode (of bench decode), jmh (of jmh -rf json)."
        },
        mixinStandardHelpOptions = true)
final class ReadmeCommand implements Callable<Integer> {
    private static final Path RECORDS = Path.of("docs", "measurements");

    private final Console console;

    @Option(
            names = "--root",
            paramLabel = "DIR",
            description = "The checkout (default: the working directory).")
    private Path root = Path.of("");

    @Option(
            names = "--check",
            description = "Changes nothing; reports what is out of date, with exit code 1.")
    private boolean check;

    @Option(
            names = "--measure",
            paramLabel = "NAME",
            description =
                    "First measures again what the pages show, except in the archive, into"
                            + " docs/measurements/NAME; the pages then show these records. Records of"
                            + " GPUs stay as they are unless all of them can be measured.")
    private String measure;

    @Spec private CommandSpec spec;

    private final List<Path> stale = new ArrayList<>();

    /** By backend and whether it is low-latency mode: that of the records on README. */
    private final Map<List<Object>, String> commits = new HashMap<>();

    ReadmeCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() throws IOException {
        if (measure != null) {
            measure();
        }
        markdownFiles().forEach(this::update);
        stale.forEach(
                file ->
                        console.line(
                                check ? "%s is out of date: ./deepep report readme" : "%s updated",
                                root.relativize(file)));
        return check && !stale.isEmpty() ? 1 : 0;
    }

    private void measure() throws IOException {
        if (check) {
            throw new UsageException(
                    "--measure changes the pages, but --check does not; give only one of them");
        }
        List<Path> pages =
                markdownFiles().stream()
                        .filter(page -> !page.startsWith(root.resolve(RECORDS).resolve("archive")))
                        .toList();
        Set<String> shown = new LinkedHashSet<>();
        for (Path page : pages) {
            MarkdownBlocks.update(
                    read(page),
                    request -> {
                        if (!request.view().equals("jmh") && !request.view().equals("shapes")) {
                            shown.add(request.option("records"));
                        }
                        return "";
                    });
        }
        Map<String, String> fresh =
                new FreshRecords(spec.root().commandLine(), console, root.resolve(RECORDS), measure)
                        .measure(shown);
        for (Path page : pages) {
            String text = read(page);
            for (Map.Entry<String, String> each : fresh.entrySet()) {
                text =
                        text.replace(
                                " records=" + each.getKey() + " ",
                                " records=" + each.getValue() + " ");
            }
            Files.writeString(page, text);
        }
        console.line("the text around the tables, and tables without records, are yours to check");
    }

    private List<Path> markdownFiles() {
        Path readme = root.resolve("README.md");
        if (!Files.isRegularFile(readme)) {
            throw new UsageException(
                    "--root: there is no "
                            + readme
                            + "; run this in the checkout, or name it by --root");
        }
        try (Stream<Path> docs = Files.walk(root.resolve("docs"))) {
            return Stream.concat(Stream.of(readme), docs)
                    .filter(file -> file.toString().endsWith(".md"))
                    .sorted()
                    .toList();
        } catch (IOException unreadable) {
            throw new UsageException("cannot list " + root + ": " + unreadable.getMessage());
        }
    }

    private void update(Path file) {
        boolean readme = file.equals(root.resolve("README.md"));
        String text = read(file);
        try {
            String updated =
                    MarkdownBlocks.update(
                            text,
                            request -> {
                                if (readme) {
                                    requireOneCommit(request);
                                }
                                String made = make(file, request);
                                request.requireAllRead();
                                return made;
                            });
            write(file, updated);
        } catch (IOException failed) {
            throw OutputFile.failed("cannot update", file, failed);
        } catch (UsageException wrong) {
            throw new UsageException(root.relativize(file) + ": " + wrong.getMessage());
        }
    }

    private static String read(Path page) {
        try {
            return Files.readString(page);
        } catch (IOException failed) {
            throw OutputFile.failed("cannot read", page, failed);
        }
    }

    private String make(Path file, MarkdownBlocks.Request request) {
        return switch (request.view()) {
            case "facts" -> MarkdownTables.facts(run(request));
            case "times" -> MarkdownTables.times(run(request), sms(request));
            case "sweep" -> MarkdownTables.sweep(run(request));
            case "shapes" -> MarkdownTables.shapes(runs(request), sms(request));
            case "tokens" ->
                    MarkdownTables.tokens(
                            run(request), sms(request), request.option("what", "time"));
            case "decode" -> DecodeRun.read(path(request), List.of()).markdown();
            case "jmh" -> JmhTable.markdown(path(request));
            case "plot" -> plot(file, request, MarkdownTables.chosen(run(request), sms(request)));
            default ->
                    throw new UsageException(
                            "deepep:"
                                    + request.view()
                                    + " is not one of facts, times, sweep, shapes, tokens, plot, decode, jmh");
        };
    }

    private static String sms(MarkdownBlocks.Request request) {
        return request.option("sms", "best");
    }

    private BenchRun run(MarkdownBlocks.Request request) {
        return BenchRun.read(path(request));
    }

    /**
     * Figures of one mode of a backend on README stand side by side: they must be of the same code.
     *
     * @throws UsageException if they are of several commits
     */
    private void requireOneCommit(MarkdownBlocks.Request request) {
        Path records = path(request);
        if (!Files.isRegularFile(records)) {
            return;
        }
        for (JsonNode each : JsonRecords.parse(records)) {
            String commit = each.path("commit").asText();
            List<Object> mode =
                    List.of(each.path("backend").asText(), JsonRecords.isLowLatency(each));
            String other = commits.putIfAbsent(mode, commit);
            if (other != null && !commit.equals(other)) {
                throw new UsageException(
                        ("%s is of commit %s, but other records of this mode on this page are of %s;"
                                        + " measure again, all in one run: deepep report readme --measure NAME")
                                .formatted(request.option("records"), commit, other));
            }
        }
    }

    private Path path(MarkdownBlocks.Request request) {
        return root.resolve(RECORDS).resolve(request.option("records"));
    }

    private List<BenchRun> runs(MarkdownBlocks.Request request) {
        Path folder = path(request);
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(each -> each.toString().endsWith(".json"))
                    .sorted()
                    .map(BenchRun::read)
                    .toList();
        } catch (IOException unreadable) {
            throw new UsageException("cannot list " + folder + ": " + unreadable.getMessage());
        }
    }

    /** Draws a plot beside the text; its description holds all values. */
    private String plot(Path file, MarkdownBlocks.Request request, List<OperationRecord> records) {
        boolean share = request.option("what", "time").equals("share");
        if (share && records.stream().anyMatch(each -> Double.isNaN(BenchRun.share(each)))) {
            throw new UsageException(
                    "deepep:plot: what=share needs a ceiling, which %s lacks; use what=time"
                            .formatted(request.option("records")));
        }
        String name = request.option("file");
        Path svg = file.resolveSibling(name);
        try {
            write(svg, OperationCharts.bars(share, records));
        } catch (IOException failed) {
            throw OutputFile.unwritable("deepep:plot", svg, failed);
        }
        String values =
                records.stream()
                        .map(
                                each ->
                                        OperationNames.of(each, records)
                                                + " "
                                                + (share
                                                        ? Decimals.of(
                                                                "%.0f %%",
                                                                100 * BenchRun.share(each))
                                                        : MarkdownTables.time(each)))
                        .collect(Collectors.joining("; "));
        return "![" + OperationCharts.title(share) + ": " + values + "](" + name + ")\n";
    }

    /** Writes a page or a picture if it is out of date, and it may be changed. */
    private void write(Path file, String content) throws IOException {
        if (Files.isRegularFile(file) && Files.readString(file).equals(content)) {
            return;
        }
        stale.add(file);
        if (!check) {
            Files.createDirectories(file.toAbsolutePath().getParent());
            Files.writeString(file, content);
        }
    }
}
