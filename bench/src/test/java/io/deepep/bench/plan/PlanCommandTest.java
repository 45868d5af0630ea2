package io.deepep.bench.plan;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeType;
import io.deepep.Buffer;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.bench.CommandLines;
import io.deepep.bench.Outcome;
import io.deepep.bench.routing.RoutingFiles;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.WireFormat;
import io.deepep.testkit.Programs;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** {@code deepep plan} from its arguments to tables, JSON and plot. */
@Tag("checkout")
final class PlanCommandTest {
    private static final double GIB = 1L << 30;

    private static JsonNode records(Path folder, String arguments) throws Exception {
        Path file = folder.resolve("plan.json");
        runLine(arguments + " --json " + file).requirePassed();
        return new ObjectMapper().readTree(file.toFile());
    }

    /** What was measured comes out again, where the line goes through it. */
    @Test
    void whatABenchMeasuredIsAProfile(@TempDir Path folder) throws Exception {
        String measured = "../docs/measurements/2026-11-22-4xh200/";
        String files = measured + "normal.json," + measured + "low-latency.json";
        JsonNode plans = records(folder, "plan --gpus-per-node 4 --seed 1 --profile " + files);
        assertThat(plans).hasSize(4);
        assertThat(plans).allMatch(plan -> plan.get("profile").asText().equals(files));
        Map<String, Double> expected =
                Map.of(
                        "normal dispatch", 250.7,
                        "normal combine", 504.0,
                        "low-latency dispatch", 23.6,
                        "low-latency combine", 48.6);
        for (JsonNode plan : plans) {
            String operation = plan.get("mode").asText() + " " + plan.get("op").asText();
            assertThat(plan.get("slowestMicros").asDouble() / expected.get(operation))
                    .as(operation)
                    .isBetween(0.9, 1.1);
        }
        runLine("plan --profile " + measured + "normal.json")
                .requireRefused("has no dispatch of low-latency mode", "plan only the other mode");
    }

    /** A sweep would simulate the other mode first. */
    @Test
    void whatWasNotMeasuredIsRefusedBeforeAnythingIsSimulated() {
        PlanOptions options =
                CommandLine.populateCommand(
                        new PlanOptions(),
                        "--profile=../docs/measurements/2026-11-22-4xh200/normal.json");
        assertThatThrownBy(options::jobs)
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("has no dispatch of low-latency mode");
    }

    /** Ranks of several hosts, which can be one node of NVLink, have no bare copy. */
    @ParameterizedTest
    @ValueSource(strings = {"", "\"ceilingBytesPerSecond\": 0,"})
    void timesWithoutABareCopyAreNoProfile(String ceiling, @TempDir Path folder) throws Exception {
        Path measured = Path.of("../docs/measurements/2026-11-22-4xh200/normal.json");
        Path file =
                Files.writeString(
                        folder.resolve("hosts.json"),
                        Files.readString(measured)
                                .replaceAll("\"ceilingBytesPerSecond\" *: *[^,]+,", ceiling));
        runLine("plan --mode normal --profile " + file).requireRefused("and a bare copy");
    }

    @Test
    void bothModesAreATable() {
        assertThat(runLine("plan --nodes 2 --tokens 64").requirePassed().outLines())
                .anyMatch(line -> line.startsWith("normal: 2 x 8 ranks, up to 64 tokens each"))
                .anyMatch(line -> line.contains("NVL") && line.contains("GiB with maxRecvTokens="))
                .anyMatch(line -> line.matches("\\| normal +\\| dispatch fp8_e4m3 .*"))
                .anyMatch(line -> line.matches("\\| low-latency +\\| combine bf16 .*"));
    }

    /** What buffers of such groups would say. */
    @Test
    void aWorldThatIsTooLargeForGpusIsSaidToBe() {
        EpTopology large = new EpTopology(0, 2048, 8);
        Outcome outcome =
                runLine("plan --nodes 256 --tokens 1 --hidden 128 --experts 2048 --topk 1");
        assertThat(outcome.outLines())
                .containsOnlyOnce("  runs on: host, cuda")
                .containsOnlyOnce(
                        "  runs on: host; "
                                + GroupLimits.lowLatency(Device.Kind.CUDA)
                                        .refusal(large)
                                        .orElseThrow());
    }

    /** NVLink domains of 72 run everywhere, one or several. */
    @Test
    void domainsOf72ArePlanned() {
        String shape = " --gpus-per-node 72 --tokens 8 --hidden 256 --experts 288 --topk 2";
        for (int nodes = 1; nodes <= 2; nodes++) {
            assertThat(runLine("plan --nodes " + nodes + shape).outLines())
                    .filteredOn(line -> line.equals("  runs on: host, cuda"))
                    .hasSize(2);
        }
    }

    @Test
    void theRecordHasThisForm(@TempDir Path folder) throws Exception {
        JsonNode records =
                records(folder, "plan --nodes 2 --gpus-per-node 4 --tokens 32 --hidden 1024");
        assertThat(records).hasSize(4);
        Map<JsonNodeType, Set<String>> form = new EnumMap<>(JsonNodeType.class);
        form(records.get(0), "", form);
        assertThat(form).containsOnlyKeys(JsonNodeType.STRING, JsonNodeType.NUMBER);
        assertThat(String.join(" ", form.get(JsonNodeType.STRING)))
                .isEqualTo("bottleneck commit dtype mode op profile routing runsOn time version");
        assertThat(String.join(" ", form.get(JsonNodeType.NUMBER)))
                .isEqualToNormalizingWhitespace(
                        """
                        experts hidden maxRecvTokens nicGbps nicsPerGpu nodes nvlBufferBytes nvlBufferBytesForRouting
                        nvlink.maxBytes nvlink.maxRows nvlink.meanBytes nvlink.meanPayloadBytes nvlink.meanRows
                        nvlinkBytesPerSecond ranks rdma.maxBytes rdma.maxRows rdma.meanBytes rdma.meanPayloadBytes
                        rdma.meanRows rdmaBufferBytes rdmaBytesPerSecond seed simulatedTokens slowestMicros tokens topk
                        typicalMicros
                        """);
    }

    private static void form(JsonNode node, String prefix, Map<JsonNodeType, Set<String>> form) {
        for (Map.Entry<String, JsonNode> field : node.properties()) {
            JsonNode value = field.getValue();
            if (value.isObject()) {
                form(value, field.getKey() + ".", form);
            } else {
                form.computeIfAbsent(value.getNodeType(), _ -> new TreeSet<>())
                        .add(prefix + field.getKey());
            }
        }
    }

    @Test
    void buffersAreWhatTheLibraryHints(@TempDir Path folder) throws Exception {
        JsonNode records = records(folder, "plan --nodes 2 --gpus-per-node 4 --tokens 32");
        EpTopology topology = new EpTopology(0, 8, 4);
        NormalLimits limits = NormalLimits.of(32, 7168, 8, 256);
        JsonNode normal = records.get(0);
        assertThat(normal.get("nvlBufferBytes").asLong())
                .isEqualTo(WireFormat.configFor(topology).nvlBufferSizeHint(limits, topology));
        assertThat(normal.get("rdmaBufferBytes").asLong())
                .isEqualTo(WireFormat.configFor(topology).rdmaBufferSizeHint(limits, topology));
        assertThat(normal.get("nvlBufferBytesForRouting").asLong())
                .isPositive()
                .isLessThan(normal.get("nvlBufferBytes").asLong());
        JsonNode lowLatency = records.get(2);
        assertThat(lowLatency.get("mode").asText()).isEqualTo("low-latency");
        assertThat(lowLatency.get("rdmaBufferBytes").asLong())
                .isEqualTo(
                        Buffer.lowLatencyRdmaSizeHint(
                                new LowLatencyLimits(32, 7168, 8, 256), topology));
    }

    @Test
    void onOneNodeNothingGoesOverRdma(@TempDir Path folder) throws Exception {
        for (JsonNode record : records(folder, "plan --tokens 16")) {
            assertThat(record.get("rdma").get("maxBytes").asDouble()).isZero();
            assertThat(record.get("bottleneck").asText()).isNotEqualTo("RDMA");
        }
    }

    @Test
    void linksAreAsFastAsTheUserSays(@TempDir Path folder) throws Exception {
        String cluster = "plan --nodes 2 --tokens 4";
        JsonNode standard = records(folder, cluster);
        JsonNode plans =
                records(folder, cluster + " --nic-gbps 200 --nics-per-gpu 0.5 --nvlink-gbs 90");
        for (int i = 0; i < plans.size(); i++) {
            assertThat(plans.get(i).get("nvlinkBytesPerSecond").asDouble()).isEqualTo(90e9);
            assertThat(plans.get(i).get("rdmaBytesPerSecond").asDouble())
                    .isEqualTo(standard.get(i).get("rdmaBytesPerSecond").asDouble() / 4);
        }
    }

    @Test
    void oncePerSelectionIsMore(@TempDir Path folder) throws Exception {
        String shape = "plan --mode low-latency --nodes 2 --low-latency-rows ";
        double perRank = rdmaRows(records(folder, shape + "per-rank"));
        double perSelection = rdmaRows(records(folder, shape + "per-selection"));
        assertThat(perSelection).isGreaterThan(perRank);
    }

    private static double rdmaRows(JsonNode records) {
        return records.get(0).get("rdma").get("meanRows").asDouble();
    }

    @Test
    void aSweepGoesUpTo2048Ranks(@TempDir Path folder) throws Exception {
        Path plot = folder.resolve("sweep.svg");
        JsonNode records =
                records(
                        folder,
                        "plan --mode low-latency --tokens 2 --hidden 512 --num-topk 2 --num-experts 12 --sweep"
                                + " --plot "
                                + plot);
        assertThat(records).hasSize(2 * 9);
        assertThat(records.get(0).get("ranks").asInt()).isEqualTo(8);
        assertThat(records.get(0).get("experts").asInt()).isEqualTo(16);
        assertThat(records.get(17).get("ranks").asInt()).isEqualTo(2048);
        assertThat(records.get(17).get("experts").asInt()).isEqualTo(2048);
        GroupLimits onGpus = GroupLimits.lowLatency(Device.Kind.CUDA);
        for (JsonNode record : records) {
            assertThat(record.get("runsOn").asText())
                    .isEqualTo(
                            record.get("ranks").asInt() <= onGpus.maxRanks()
                                    ? "host, cuda"
                                    : "host");
        }
        assertThat(Files.readString(plot))
                .startsWith("<svg ")
                .contains("low-latency dispatch", "low-latency combine", ">2,048<");
    }

    @Test
    void theTableOfASweepShowsWhatTheRecordsSay(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("plan.json");
        List<String> lines =
                runLine("plan --tokens 64 --hidden 512 --num-topk 2 --sweep --json " + file)
                        .requirePassed()
                        .outLines();
        for (JsonNode record : new ObjectMapper().readTree(file.toFile())) {
            String row =
                    String.format(
                            Locale.ROOT,
                            "| %s | %d | %s | %s %s | %.2f | %.2f | %.2f | %.2f | %.2f | %s | %.0f |",
                            record.get("mode").asText(),
                            record.get("ranks").asInt(),
                            record.get("runsOn").asText(),
                            record.get("op").asText(),
                            record.get("dtype").asText(),
                            record.get("nvlBufferBytes").asLong() / GIB,
                            record.get("nvlBufferBytesForRouting").asLong() / GIB,
                            record.get("rdmaBufferBytes").asLong() / GIB,
                            record.get("nvlink").get("meanBytes").asDouble() / 1e6,
                            record.get("rdma").get("meanBytes").asDouble() / 1e6,
                            record.get("bottleneck").asText(),
                            record.get("slowestMicros").asDouble());
            assertThat(lines).anyMatch(line -> withoutShape(line).equals(row));
        }
        assertThat(lines)
                .startsWith(
                        "8 ranks a node, hidden 512, top-2, uniform routing; at least 256 experts, a multiple of the ranks")
                .anyMatch(line -> line.startsWith("NVL GiB: enough for any routing; needed: "))
                .anyMatch(line -> line.endsWith("mean of all ranks and busiest; profile h200:"));
    }

    /** Cells apart by one blank, without those of experts, tokens and simulated ones. */
    private static String withoutShape(String row) {
        return row.replaceAll(" +", " ").replaceFirst("^(\\|[^|]*\\|[^|]*\\|)([^|]*\\|){3}", "$1");
    }

    @Test
    void aRecordedRoutingIsCounted(@TempDir Path folder) throws Exception {
        // Two ranks on two nodes, two experts each: rank 0 sends token 0 away and token 1 to
        // itself, rank 1 both.
        Path file =
                RoutingFiles.npyI64(
                        folder.resolve("r.npy"), new long[] {4, 2}, 0, 2, 0, 1, 1, 0, -1, 0);
        JsonNode records =
                records(
                        folder,
                        "plan --mode normal --nodes 2 --gpus-per-node 1 --num-experts 4 --hidden 256 --routing "
                                + file);
        JsonNode dispatch = records.get(0);
        assertThat(dispatch.get("tokens").asInt()).isEqualTo(2);
        assertThat(dispatch.get("topk").asInt()).isEqualTo(2);
        assertThat(dispatch.get("routing").asText()).isEqualTo("r.npy");
        assertThat(dispatch.get("rdma").get("meanRows").asDouble()).isEqualTo(1.5);
        assertThat(dispatch.get("rdma").get("maxRows").asDouble()).isEqualTo(2);
        assertThat(dispatch.get("maxRecvTokens").asInt()).isEqualTo(4);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "plan --nodes 3 | deepep: --num-experts=256 is not a multiple of the number of ranks, 24; give 264, for example",
                "plan --gpus-per-node 73 | deepep: --gpus-per-node=73 is not in [1, 72]",
                "plan --nodes 0 | deepep: --nodes=0 is not in [1, 2048]",
                "plan --nodes 2000 | deepep: --nodes=2000 x --gpus-per-node=8 exceed the most ranks that can be planned, 2048",
                "plan --experts 100000 | deepep: --num-experts=100000 is not in [1, 65536]",
                "plan --mode normal --tokens 0 | deepep: maxTokens=0 must be at least 1",
                "plan --mode low-latency --tokens 2000 | deepep: maxTokens=2000 is not in [1, 1024]",
                "plan --tokens 2000 | deepep: --num-tokens=2000 is more than low-latency mode allows, 1024; use --mode normal",
                "plan --mode normal --tokens 2000000000 | deepep: 2000000000 tokens of 8 ranks are more rows than a buffer can have,"
                        + " 2147483647; lower numTokens",
                "plan --topk 33 | deepep: maxTopk=33 is not in [1, 32]",
                "plan --hidden 200 | deepep: --hidden=200 is not a multiple of 128, which FP8 needs; use --dtype bf16",
                "plan --mode normal --dtype bf16 --hidden 20 | deepep: hidden=20 is not a positive multiple of 8",
                "plan --nic-gbps 0 | deepep: nicGbps=0.0 is not in [0.001, 1000000.0]",
                "plan --nics-per-gpu -1 | deepep: nicsPerGpu=-1.0 is not in [0.001, 1000000.0]",
                "plan --nvlink-gbs -3 | deepep: nvlinkGbs=-3.0 is not in [0.001, 1000000.0]",
                "plan --mode fast | deepep: Invalid value for option '--mode': 'fast' is not one of [normal, low-latency, both]"
                        + "; see deepep plan --help",
                "plan --profile x900 | deepep: --profile=x900 is not one of h200, h100, b200, gb200, h800-deepep-v1,"
                        + " and there is no file x900",
                "plan --profile ../docs/measurements/2026-11-21-host/normal-8x1024.json | deepep:"
                        + " --profile=../docs/measurements/2026-11-21-host/normal-8x1024.json:"
                        + " ../docs/measurements/2026-11-21-host/normal-8x1024.json has no times of several ranks"
                        + " on one node with a GPU each, and a bare copy; record them on one host with bench"
                        + " normal or bench low-latency --backend cuda --json",
                "plan --routing normal | deepep: --routing=normal is not uniform, zipf, group-limited or a .npy or .safetensors file",
                "plan --routing /no/such.npy | deepep: --routing: there is no file /no/such.npy",
                "plan --routing x.npy --experts 250 | deepep: --num-experts=250 is not a multiple of the number of ranks, 8;"
                        + " give 256, for example",
                "plan --routing x.npy --sweep | deepep: --sweep needs a random routing, for any"
                        + " number of ranks: uniform, zipf or group-limited",
                "plan --routing group-limited --num-groups 7 | deepep: numExperts=256 is not a multiple of numGroups=7",
                "plan --num-groups 4 | deepep: --num-groups and --num-topk-groups do not go with --routing=uniform;"
                        + " use --routing group-limited",
                "plan --json . | deepep: --json=. is a folder; name a file in it",
                "plan --sweep --nodes 2 | deepep: --nodes=2 does not go with --sweep, which plans all numbers of nodes",
                "plan --plot a.svg | deepep: --plot=a.svg needs --sweep: it draws times over world sizes",
                "plan --sweep --plot a.png | deepep: --plot=a.png does not end in .svg",
                "plan --json /no/such/folder/x.json | deepep: --json=/no/such/folder/x.json: there is no folder /no/such/folder",
                "plan --bogus | deepep: Unknown option: '--bogus'; see deepep plan --help"
            })
    void wrongUsageIsOneLineAndExitCode2(String arguments, String complaint) {
        runLine(arguments).requireComplaint(complaint);
    }

    @Test
    void aModelGivesTheShape(@TempDir Path folder) throws Exception {
        Path config =
                Files.writeString(
                        folder.resolve("config.json"),
                        "{\"hidden_size\": 512, \"num_experts_per_tok\": 4, \"num_local_experts\": 32}");
        JsonNode record = records(folder, "plan --tokens 4 --model " + config).get(0);
        assertThat(record.get("hidden").asInt()).isEqualTo(512);
        assertThat(record.get("topk").asInt()).isEqualTo(4);
        assertThat(record.get("experts").asInt()).isEqualTo(32);
        JsonNode other =
                records(folder, "plan --tokens 4 --num-experts 64 --model " + folder).get(0);
        assertThat(other.get("experts").asInt()).isEqualTo(64);
        Files.writeString(config, "{\"text_config\": {\"hidden_size\": 512}}");
        runLine("plan --model " + config)
                .requireRefused("has no num_experts_per_tok or", "a model with experts?");
        Files.writeString(config, "{\"hidden_size\": 512.5}");
        runLine("plan --model " + config).requireRefused(config + " has no hidden_size;");
    }

    /** As in the portable bundle: without java.desktop. */
    @Test
    void chartsNeedNoDesktop(@TempDir Path folder) throws Exception {
        ProcessBuilder plan =
                CommandLines.process(
                        "plan --mode low-latency --tokens 2 --hidden 512 --num-topk 2 --num-experts 12"
                                + " --sweep",
                        "--plot=" + folder.resolve("a.svg"));
        plan.command()
                .add(1, "--limit-modules=java.base,java.logging,java.management,java.xml,jdk.jfr");
        Programs.run(plan).requireSuccess();
        assertThat(folder.resolve("a.svg")).content().startsWith("<svg ");
    }

    @Test
    void aFileOfTooManyTokensForLowLatencyModeIsRefused(@TempDir Path folder) throws Exception {
        Path file =
                RoutingFiles.npyI64(
                        folder.resolve("r.npy"), new long[] {8 * 1025, 1}, new long[8 * 1025]);
        runLine("plan --routing " + file)
                .requireComplaint(
                        "deepep: --routing: a rank has 1025 tokens, more than low-latency mode allows,"
                                + " 1024; use --mode normal");
        runLine("plan --mode normal --routing " + file).requirePassed();
    }

    @Test
    void tokensOfAFileAreItsOwn(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 3);
        runLine("plan --tokens 4 --routing " + file)
                .requireComplaint(
                        "deepep: --num-tokens and --num-topk do not go with a routing file, which gives both");
    }
}
