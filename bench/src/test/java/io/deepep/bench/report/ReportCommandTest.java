package io.deepep.bench.report;

import static io.deepep.bench.CommandLines.run;
import static io.deepep.bench.report.ReportFixture.NUM_EXPERTS;
import static io.deepep.bench.report.ReportFixture.NUM_RANKS;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.deepep.bench.CommandLines;
import io.deepep.bench.Outcome;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.RoutingCounts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@code report} makes of what a bench recorded. */
@Tag("checkout")
class ReportCommandTest {
    @TempDir static Path folder;

    @BeforeAll
    static void record() {
        ReportFixture.record(folder);
        ReportFixture.report(folder);
    }

    @Test
    void helpShowsWhatIsNeeded() {
        assertThat(run("report", "--help").outLines().getFirst()).endsWith("--out=DIR RECORDS...");
    }

    @Test
    void everyPlotIsAPictureAndInThePage() throws Exception {
        String page = Files.readString(folder.resolve("report/report.html"));
        List<Path> plots;
        try (Stream<Path> files = Files.list(folder.resolve("report"))) {
            plots = files.filter(file -> file.toString().endsWith(".svg")).toList();
        }
        assertThat(plots)
                .extracting(file -> file.getFileName().toString())
                .containsExactlyInAnyOrder(
                        "4096-tokens-time.svg",
                        "4096-tokens-share.svg",
                        "host-time.svg",
                        "host-share.svg",
                        "host-traffic.svg",
                        "host-experts.svg",
                        "flight-times.svg",
                        "flight-waits.svg",
                        "flight-traffic-normal-dispatch.svg",
                        "flight-traffic-normal-combine.svg",
                        "flight-experts-normal.svg");
        for (Path plot : plots) {
            String svg = Files.readString(plot);
            assertThat(
                            DocumentBuilderFactory.newInstance()
                                    .newDocumentBuilder()
                                    .parse(plot.toFile())
                                    .getDocumentElement()
                                    .getElementsByTagName("rect")
                                    .getLength())
                    .as("shapes of %s", plot)
                    .isGreaterThan(3);
            assertThat(page).contains(svg);
        }
        assertThat(page)
                .contains("dispatch FP8, cached", "NVIDIA H200", "Show every number of SMs")
                .doesNotContain("src=\"http", "href=\"http");
    }

    /** The records carry the routing, and the flight recorder saw the same. */
    @Test
    void recordingAgreesWithTheRecords() {
        BenchRun run = BenchRun.read(folder.resolve("host.json"));
        RoutingCounts counts = run.routed().routing();
        assertThat(counts.rows()).hasSize(NUM_RANKS);
        assertThat(counts.expertTokens()).hasSize(NUM_EXPERTS);
        assertThat(run.records().stream().skip(1)).allMatch(each -> each.routing() == null);
        FlightSummary flight = flight(0);
        FlightSummary.Calls combines = flight.calls.get("normal combine bf16");
        assertThat(combines.failed).isZero();
        assertThat(combines.hostMicros(50)).isPositive();
        OperationRecord combine = lastCombine(run, "bf16");
        // All ranks together move in each combine what the record says.
        assertThat(combines.nvlinkBytes)
                .isEqualTo(combine.nvlinkBytes() * combines.count / NUM_RANKS);
        long[][] sent = flight.traffic.get("normal combine");
        // Rows come home as BF16 in some calls and as FP8 in others.
        FlightSummary.Calls casting = flight.calls.get("normal combine fp8_e4m3");
        long perRow =
                bytesPerRow(combine, combines, counts)
                        + bytesPerRow(lastCombine(run, "fp8_e4m3"), casting, counts);
        for (int from = 0; from < NUM_RANKS; from++) {
            for (int to = 0; to < NUM_RANKS; to++) {
                assertThat(sent[from][to])
                        .as("bytes home from rank %d to rank %d", from, to)
                        .isEqualTo(counts.rows().get(to).get(from) * perRow);
            }
        }
        assertThat(flight.waits).hasDimensions(NUM_RANKS, NUM_RANKS);
        long[] experts = flight.experts.get("normal");
        for (int expert = 0; expert < NUM_EXPERTS; expert++) {
            assertThat(experts[expert] * counts.expertTokens().getFirst())
                    .isEqualTo(experts[0] * counts.expertTokens().get(expert));
        }
    }

    private static FlightSummary flight(int warmups) {
        FlightSummary flight = new FlightSummary(warmups);
        flight.add(folder.resolve("host.jfr"));
        return flight;
    }

    private static OperationRecord lastCombine(BenchRun run, String dtype) {
        return run.records().stream()
                .filter(each -> each.op().startsWith("combine") && each.dtype().equals(dtype))
                .toList()
                .getLast();
    }

    /** What all calls of a kind together sent home for a row of a token. */
    private static long bytesPerRow(
            OperationRecord combine, FlightSummary.Calls calls, RoutingCounts counts) {
        return combine.logicalBytes() / rows(counts) * (calls.count / NUM_RANKS);
    }

    private static long rows(RoutingCounts counts) {
        return counts.rows().stream().flatMap(List::stream).mapToLong(Integer::longValue).sum();
    }

    /** Its first record is of one token, with the counts of 128. */
    @Test
    void anOldRunOfSeveralNumbersOfTokensHasNoTraffic(@TempDir Path other) throws IOException {
        Path old = Path.of("../docs/measurements/2026-11-27-4xh200-afternoon/low-latency.json");
        CommandLines.run("report", old, "--out", other.resolve("report")).requirePassed();
        assertThat(other.resolve("report").resolve("low-latency-experts.svg")).exists();
        assertThat(other.resolve("report").resolve("low-latency-traffic.svg")).doesNotExist();
    }

    /** As of a job that was killed while it wrote them. */
    @Test
    void recordingsThatAreCutOffAreRefused(@TempDir Path other) throws IOException {
        byte[] whole = Files.readAllBytes(folder.resolve("host.jfr"));
        for (int twentieth = 0; twentieth < 20; twentieth++) {
            byte[] part = Arrays.copyOf(whole, whole.length / 20 * twentieth);
            Path file = Files.write(other.resolve("cut.jfr"), part);
            run("report", file, "--out", other.resolve("none"))
                    .requireRefused(file.toString(), "recording");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"report", "report x.json", "report --out y"})
    void missingArgumentsAreNamed(String command) {
        run((Object[]) command.split(" ", -1)).requireRefused("RECORDS", "--out");
    }

    @Test
    void theFirstSectionAnswers() throws IOException {
        assertThat(Files.readString(folder.resolve("report/report.html")))
                .containsPattern("Which expert is hot\\?</th><td>expert \\d, with \\d\\.")
                .containsPattern("Who is slow\\?</th><td>rank [0-3], which caused \\d+ % of all")
                .contains("99 % (dispatch BF16, cached)", "How close to the limit?");
    }

    /** Half of a rank's calls stay. */
    @Test
    void firstCallsAreLeftOut() {
        FlightSummary all = flight(0);
        assertThat(all.skipped()).isZero();
        long calls = all.calls.values().stream().mapToLong(each -> each.count).sum();
        assertThat(flight(1000).skipped()).isBetween(calls / 3, calls / 2);
        FlightSummary one = flight(1);
        assertThat(one.skipped()).isEqualTo((long) NUM_RANKS * one.calls.size());
        assertThat(one.calls.keySet())
                .allSatisfy(
                        name ->
                                assertThat(one.calls.get(name).hostMicros(100))
                                        .isLessThanOrEqualTo(all.calls.get(name).hostMicros(100)));
    }

    @Test
    void theTimelineHasEveryCall() throws IOException {
        JsonNode trace =
                new ObjectMapper().readTree(folder.resolve("report/timeline.json").toFile());
        FlightSummary flight = flight(0);
        long calls = flight.calls.values().stream().mapToLong(each -> each.count).sum();
        assertThat(trace.get("traceEvents"))
                .filteredOn(event -> event.get("ph").asText().equals("X"))
                .hasSize((int) calls)
                .allMatch(event -> event.get("dur").asDouble() > 0)
                .allMatch(event -> event.get("pid").asInt() < NUM_RANKS);
        assertThat(trace.get("traceEvents"))
                .filteredOn(event -> event.get("name").asText().equals("process_name"))
                .extracting(event -> event.at("/args/name").asText())
                .containsExactly("rank 0", "rank 1", "rank 2", "rank 3");
        requireOneAfterAnother(trace.get("traceEvents"));
    }

    /** To the nanosecond: Perfetto nests calls of a track that overlap. */
    private static void requireOneAfterAnother(JsonNode events) {
        Map<String, TreeMap<Double, Double>> tracks = new HashMap<>();
        for (JsonNode event : events) {
            if (event.has("ts")) {
                String track = event.get("pid") + " " + event.get("tid");
                tracks.computeIfAbsent(track, _ -> new TreeMap<>())
                        .put(event.get("ts").asDouble(), event.get("dur").asDouble());
            }
        }
        assertThat(tracks).hasSize(2 * NUM_RANKS);
        assertThat(tracks.values()).anyMatch(calls -> calls.firstKey() == 0);
        for (TreeMap<Double, Double> calls : tracks.values()) {
            double end = 0;
            for (Map.Entry<Double, Double> call : calls.entrySet()) {
                assertThat(call.getKey()).isGreaterThan(end - 1e-3);
                end = call.getKey() + call.getValue();
            }
        }
    }

    @Test
    void runsAreCompared(@TempDir Path other) throws IOException {
        Path measurements = Path.of("../docs/measurements/2026-11-22-4xh200");
        run(
                        "report",
                        "--compare",
                        measurements.resolve("before-normal.json"),
                        measurements.resolve("normal.json"),
                        "--out",
                        other)
                .requirePassed();
        assertThat(Files.readString(other.resolve("report.html")))
                .contains("normal compared with before-normal", "after / before", "32e272ee01bc");
        assertThat(other.resolve("normal-comparison.svg")).exists();
        run("report", "--compare", folder.resolve("host.json"), "--out", other)
                .requireRefused("--compare needs the records of two runs, and there are 1");
    }

    @Test
    void runsWithoutACommonOperationAreNotCompared(@TempDir Path other) {
        Path measurements = Path.of("../docs/measurements/2026-11-22-4xh200");
        run(
                        "report",
                        "--compare",
                        measurements.resolve("normal.json"),
                        measurements.resolve("low-latency.json"),
                        "--out",
                        other.resolve("page"))
                .requireRefused("have no operation with the same tokens", "two runs of one bench");
        assertThat(other.resolve("page")).doesNotExist();
    }

    /** Or rows of half the size would look like a faster library. */
    @Test
    void bothShapesStandBesideAComparison(@TempDir Path other) throws IOException {
        String text = Files.readString(folder.resolve("host.json"));
        Path wider =
                Files.writeString(
                        other.resolve("wider.json"),
                        text.replace("\"hidden\" : 256", "\"hidden\" : 512"));
        run("report", "--compare", folder.resolve("host.json"), wider, "--out", other)
                .requirePassed();
        assertThat(Files.readString(other.resolve("report.html")))
                .containsPattern("Before: [^<]* hidden 256,[^<]* After: [^<]* hidden 512,");
    }

    @Test
    void ranksAreCountedByNode() {
        Path records = Path.of("../docs/measurements/2026-11-27-4xh200-both-kinds");
        assertThat(BenchRun.read(records.resolve("2x2-both-kinds-1-together.json")).machine())
                .endsWith(", 2 x 2 ranks");
    }

    /** Otherwise the fewest tokens, the fastest, would speak for all. */
    @Test
    void eachNumberOfTokensIsShown() {
        BenchRun run =
                BenchRun.read(Path.of("../docs/measurements/2026-11-22-4xh200/low-latency.json"));
        ReportPage page = new ReportPage("", "");
        Glance.add(page, List.of(run), new FlightSummary(0));
        assertThat(page.html())
                .contains(
                        "FP8, UE8M0, tokens: 1) to 66 % (low-latency combine BF16, in place, tokens: 128)");
        assertThat(run.fastest()).hasSize(4 * 7);
    }

    /** Also on the host, where they are channels between nodes. */
    @Test
    void onlyRecordsOfAsManySmsAreCompared(@TempDir Path other) throws IOException {
        ObjectMapper json = new ObjectMapper();
        ArrayNode records = (ArrayNode) json.readTree(folder.resolve("host.json").toFile());
        int half = records.size();
        for (int i = 0; i < half; i++) {
            ObjectNode slower = records.get(i).deepCopy();
            slower.put("sms", 8).put("p50Micros", 2 * slower.get("p50Micros").asDouble());
            records.add(slower);
        }
        Path file = other.resolve("two.json");
        json.writeValue(file.toFile(), records);
        ReportPage page = new ReportPage("", "");
        RunComparison.add(page, BenchRun.read(file), BenchRun.read(file));
        assertThat(page.sections.getFirst().tables().getFirst().rows())
                .hasSize(2 * half)
                .allMatch(row -> row.cells().getLast().text().equals("100 %"));
    }

    /** Nothing is written over what was written. */
    @Test
    void runsOfOneNameHaveTheirFoldersInTheirs(@TempDir Path other) throws IOException {
        for (String side : List.of("before", "after")) {
            Path file = Files.createDirectories(other.resolve(side + "/one")).resolve("host.json");
            Files.copy(folder.resolve("host.json"), file);
        }
        Path out = other.resolve("page");
        Outcome outcome =
                run(
                        "report",
                        "--compare",
                        other.resolve("before/one/host.json"),
                        other.resolve("after/one/host.json"),
                        folder.resolve("host.jfr"),
                        "--out",
                        out);
        assertThat(Files.readString(out.resolve("report.html")))
                .contains("after-one-host compared with before-one-host");
        assertThat(out.resolve("before-one-host-time.svg")).exists();
        requireAllPlots(outcome, out);
    }

    @Test
    void aRunMayHaveTheNameOfARecordingsPlots(@TempDir Path other) throws IOException {
        Path run = Files.copy(folder.resolve("host.json"), other.resolve("flight.json"));
        Path out = other.resolve("page");
        requireAllPlots(run("report", run, folder.resolve("host.jfr"), "--out", out), out);
    }

    private static void requireAllPlots(Outcome outcome, Path out) throws IOException {
        outcome.requirePassed();
        try (Stream<Path> files = Files.list(out)) {
            long plots = files.filter(file -> file.toString().endsWith(".svg")).count();
            assertThat(outcome.out()).contains(", " + plots + " plots)");
        }
    }

    @Test
    void theDecodingLoopIsATable(@TempDir Path other) throws IOException {
        Path loop = Path.of("../docs/measurements/2026-11-21-4xh200/decode.json");
        run("report", loop, "--out", other).requirePassed();
        assertThat(Files.readString(other.resolve("report.html")))
                .contains("decode: decoding loop", "4 x NVIDIA H200", "launched by Java")
                .contains("60 layers", "top-8 of 256 experts");
    }

    /** Those of the same shape and device are side by side, in a table and a plot. */
    @Test
    void layersAreComparedByTheirShape(@TempDir Path other) throws IOException {
        Path java = layers(other.resolve("java.json"), "gpu", "DJL", 64, 30);
        Path python =
                layers(other.resolve("python.json"), "GPU", "PyTorch, all-to-all of NCCL", 64, 50);
        Path larger = layers(other.resolve("larger.json"), "gpu", "DJL", 128, 70);
        Path slower = layers(other.resolve("slower.json"), "cpu", "DJL", 64, 900);
        run("report", java, python, larger, slower, "--out", other.resolve("page")).requirePassed();
        assertThat(Files.readString(other.resolve("page/report.html")))
                .contains("java: a layer of a model", "4 ranks (gpu), hidden 64, experts of 32")
                .contains("PyTorch, all-to-all of NCCL, normal", "larger: a layer of a model")
                .contains("slower: a layer of a model", "4 ranks (cpu), hidden 64, experts of 32")
                .doesNotContain("python: a layer");
        assertThat(Files.readString(other.resolve("page/java-layer.svg")))
                .contains("DJL, normal", "PyTorch, all-to-all of NCCL, normal")
                .doesNotContain("points=\"\"");
        assertThat(other.resolve("page/larger-layer.svg")).exists();
    }

    private static Path layers(Path file, String device, String who, int hidden, int micros)
            throws IOException {
        String records =
                IntStream.of(1, 8)
                        .mapToObj(
                                tokens ->
                                        """
                                        {"layer": "%s", "mode": "normal", "hidden": %s, "intermediate": 32,
                                         "experts": 8, "topk": 2, "ranks": 4, "device": "%s", "tokens": %s,
                                         "gateMicros": 1, "dispatchMicros": 2, "expertsMicros": 3,
                                         "combineMicros": 4, "layerMicros": %s}"""
                                                .formatted(
                                                        who,
                                                        hidden,
                                                        device,
                                                        tokens,
                                                        micros + tokens))
                        .collect(Collectors.joining(",", "[", "]"));
        return Files.writeString(file, records);
    }

    @Test
    void aRecordingNeedsAFolder() {
        run("bench", "normal", "--backend", "host", "--jfr", folder.resolve("no/x.jfr"))
                .requireRefused("--jfr=", "there is no folder");
    }
}
