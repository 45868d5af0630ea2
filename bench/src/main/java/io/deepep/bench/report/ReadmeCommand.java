package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code deepep report readme}: tables and plots of the documentation, from records. */
@Command(
        name = "readme",
        description = {
            "Makes every table and plot of README.md and docs/ anew that stands between"
                    + " <!-- deepep:VIEW records=... --> and <!-- deepep:end -->.",
            "Records are paths under docs/measurements. Views: facts, times (sms=N or best), sweep,"
                    + " shapes (records= a folder, sms=), tokens (sms=, what=time or call), plot (sms=,"
                    + " file=, what=time or share), decode (of bench decode), jmh (of jmh -rf json)."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
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
            description =
                    "Changes nothing; complains, with exit code 1, about what is out of date.")
    private boolean check;

    ReadmeCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() {
        if (!check) {
            ReportCommand.requireDrawable();
        }
        List<Path> stale = new ArrayList<>();
        for (Path file : markdownFiles()) {
            if (update(file)) {
                stale.add(file);
            }
        }
        stale.forEach(
                file ->
                        console.line(
                                check ? "%s is out of date: ./deepep report readme" : "%s updated",
                                root.relativize(file)));
        return check && !stale.isEmpty() ? 1 : 0;
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

    /** Whether the file was out of date. */
    private boolean update(Path file) {
        try {
            String before = Files.readString(file);
            String after = MarkdownBlocks.update(before, request -> make(file, request));
            boolean stale = !after.equals(before);
            if (stale && !check) {
                Files.writeString(file, after);
            }
            return stale;
        } catch (IOException failed) {
            throw new UsageException("cannot update " + file + ": " + failed.getMessage());
        } catch (UsageException wrong) {
            throw new UsageException(root.relativize(file) + ": " + wrong.getMessage());
        }
    }

    private String make(Path file, MarkdownBlocks.Request request) {
        String sms = request.option("sms", "best");
        return switch (request.view()) {
            case "facts" -> MarkdownTables.facts(run(request));
            case "times" -> MarkdownTables.times(run(request), sms);
            case "sweep" -> MarkdownTables.sweep(run(request));
            case "shapes" -> MarkdownTables.shapes(runs(request), sms);
            case "tokens" ->
                    MarkdownTables.tokens(run(request), sms, request.option("what", "time"));
            case "decode" -> DecodeRun.read(path(request)).markdown();
            case "jmh" -> JmhTable.markdown(path(request));
            case "plot" -> plot(file, request, MarkdownTables.chosen(run(request), sms));
            default ->
                    throw new UsageException(
                            "deepep:"
                                    + request.view()
                                    + " is not one of facts, times, sweep, shapes, tokens, plot, decode, jmh");
        };
    }

    private BenchRun run(MarkdownBlocks.Request request) {
        return BenchRun.read(path(request));
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

    /**
     * Draws a plot beside the text. Its description holds all values, so whoever compares texts
     * learns when the plot is out of date too.
     */
    private String plot(Path file, MarkdownBlocks.Request request, List<OperationRecord> records) {
        boolean share = request.option("what", "time").equals("share");
        String name = request.option("file");
        Path target = file.resolveSibling(name);
        String title = share ? "Share of the ceiling" : "Time by operation";
        if (!check) {
            draw(target, title, share, records);
        } else if (!Files.isRegularFile(target)) {
            throw new UsageException(
                    "the plot " + target + " is missing; run ./deepep report readme");
        }
        String values =
                records.stream()
                        .map(
                                each ->
                                        OperationNames.of(each)
                                                + " "
                                                + (share
                                                        ? Decimals.of(
                                                                "%.0f %%",
                                                                100 * BenchRun.share(each))
                                                        : MarkdownTables.time(each)))
                        .collect(Collectors.joining("; "));
        return "![" + title + ": " + values + "](" + name + ")\n";
    }

    private static void draw(
            Path target, String title, boolean share, List<OperationRecord> records) {
        byte[] png =
                Charts.bars(
                        title,
                        share ? "%" : "µs, median of the slowest rank",
                        records.stream().map(OperationNames::of).toList(),
                        records.stream()
                                .map(each -> share ? 100 * BenchRun.share(each) : each.p50Micros())
                                .toList());
        try {
            Files.createDirectories(target.toAbsolutePath().getParent());
            Files.write(target, png);
        } catch (IOException unwritable) {
            throw new UncheckedIOException(unwritable);
        }
    }
}
