package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import picocli.CommandLine;

/**
 * Measures again what records say: the same shapes with this build, on this machine. All records of
 * a backend are measured, or none replaces an old one, so that figures of several commits do not
 * come to stand side by side.
 */
final class FreshRecords {
    /** How rows come back where a record, or a command, does not say. */
    private static final String DEFAULT_COMBINE = "bf16";

    private final CommandLine deepep;
    private final Console console;
    private final Path all;
    private final String name;

    /**
     * Has measured nothing yet.
     *
     * @param deepep the whole command
     * @param all the folder of all records
     * @param name of a new folder in it
     * @throws UsageException if that is no name of a folder
     */
    FreshRecords(CommandLine deepep, Console console, Path all, String name) {
        this.deepep = deepep;
        this.console = console;
        this.all = all;
        this.name = name;
        if (!name.matches("[\\w-][\\w.-]*")) {
            throw new UsageException(
                    "--measure="
                            + name
                            + " is not the name of a folder, such as 2026-11-22-4xh200");
        }
    }

    /**
     * Measures.
     *
     * @param records files of records, relative to the folder of all
     * @return the new file of each that was measured
     * @throws UsageException if none was, a file has no records, two would have the same name, or
     *     the new folder is there already
     */
    Map<String, String> measure(Collection<String> records) throws IOException {
        Set<Path> names = new HashSet<>();
        for (String each : records) {
            if (!names.add(Path.of(each).getFileName())) {
                throw new UsageException(
                        "--measure: two of the records shown have the name of "
                                + each
                                + "; rename one");
            }
        }
        Map<String, List<String>> byBackend =
                records.stream()
                        .collect(
                                Collectors.groupingBy(
                                        each -> first(each).path("backend").asText(),
                                        TreeMap::new,
                                        Collectors.toList()));
        makeFolder();
        Map<String, String> fresh = new LinkedHashMap<>();
        byBackend.forEach(
                (backend, files) -> {
                    Map<String, String> made = measureAll(files);
                    if (made.isEmpty()) {
                        console.line("records of the backend %s stay as they were", backend);
                    }
                    fresh.putAll(made);
                });
        if (fresh.isEmpty()) {
            Files.delete(all.resolve(name));
            throw new UsageException("--measure: nothing could be measured, see above");
        }
        return fresh;
    }

    private void makeFolder() {
        Path folder = all.resolve(name);
        try {
            Files.createDirectory(folder);
        } catch (IOException refused) {
            throw OutputFile.failed("--measure: cannot make a new folder", folder, refused);
        }
    }

    /** Those of one backend; empty if one of them cannot be measured here. */
    private Map<String, String> measureAll(List<String> files) {
        Map<String, String> fresh = new LinkedHashMap<>();
        for (String file : files) {
            String target = name + "/" + Path.of(file).getFileName();
            List<String> words = command(JsonRecords.parse(all.resolve(file)));
            console.line("deepep %s --json %s", String.join(" ", words), all.resolve(target));
            int code = run(words, all.resolve(target));
            if (code == CommandLine.ExitCode.USAGE) {
                fresh.values().forEach(each -> OutputFile.discard(all.resolve(each)));
                return Map.of();
            }
            if (code != 0) {
                throw new UsageException(
                        "--measure: deepep " + String.join(" ", words) + " failed, see above");
            }
            fresh.put(file, target);
        }
        return fresh;
    }

    private int run(List<String> words, Path target) {
        List<String> line = new ArrayList<>(words);
        line.addAll(List.of("--json", target.toString()));
        return deepep.execute(line.toArray(String[]::new));
    }

    private JsonNode first(String file) {
        List<JsonNode> records = JsonRecords.parse(all.resolve(file));
        if (records.isEmpty()) {
            throw new UsageException(all.resolve(file) + " has no records");
        }
        return records.getFirst();
    }

    /** The command that measures such records, without its file. */
    static List<String> command(List<JsonNode> records) {
        JsonNode first = records.getFirst();
        boolean decode = JsonRecords.isDecode(first);
        boolean lowLatency = JsonRecords.isLowLatency(first);
        int nodes = first.path("nodes").asInt(1);
        int mostTokens =
                records.stream().mapToInt(each -> each.path("tokens").asInt()).max().orElseThrow();
        List<String> words = new ArrayList<>(List.of("bench"));
        words.add(decode ? "decode" : lowLatency ? "low-latency" : "normal");
        add(words, "--backend", first.path("backend").asText());
        add(words, "--nodes", nodes);
        add(words, "--ranks-per-node", first.path("ranks").asInt() / nodes);
        add(words, "--num-tokens", mostTokens);
        if (lowLatency) {
            add(words, "--measured-tokens", distinct(records, "tokens"));
        }
        add(words, "--hidden", first.path("hidden").asInt());
        add(words, "--num-topk", first.path("topk").asInt());
        add(words, "--num-experts", first.path("experts").asInt());
        add(words, "--sms", distinct(records, "sms"));
        add(words, "--repeats", first.path("repeats").asInt());
        if (decode) {
            add(words, "--layers", first.path("layers").asInt());
            if (first.path("preReduced").asBoolean()) {
                words.add("--pre-reduced");
            }
            String combine = first.path("combineFormat").asText(DEFAULT_COMBINE);
            if (!combine.equals(DEFAULT_COMBINE)) {
                add(words, "--combine", combine);
            }
        }
        return words;
    }

    private static void add(List<String> words, String option, Object value) {
        words.add(option);
        words.add(value.toString());
    }

    private static String distinct(List<JsonNode> records, String field) {
        return records.stream()
                .map(each -> each.path(field).asText())
                .distinct()
                .collect(Collectors.joining(","));
    }
}
