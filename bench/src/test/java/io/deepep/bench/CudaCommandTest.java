package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.cuda.CudaDevice;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands on GPUs, small enough for several ranks to share one. */
final class CudaCommandTest {
    private static final String SMALL =
            " --backend cuda --num-tokens 21 --hidden 512 --num-topk 3 --timeout 20 --gpus 1";

    @BeforeEach
    void needsCuda() {
        CudaLowLatencySoakTest.requireCuda();
    }

    private static List<String> run(String arguments) {
        return CommandLines.runLine(arguments).requirePassed().outLines();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--ranks 1 --num-experts 4",
                "--ranks 3 --num-experts 12 --distribution zipf",
                "--ranks 4 --num-experts 16 --sms 4,6",
            })
    void testsPassAndReportTheBest(String ranks) {
        List<String> out = run("test-intranode " + ranks + SMALL);
        assertThat(out.getLast()).matches("[1-9][0-9]* passed, 0 failed");
        assertThat(out).anyMatch(line -> line.startsWith("combine (BF16) : best with"));
    }

    /** Its default, 2 x 8: more ranks than a node has. Two blocks of each have to be resident. */
    @Test
    void internodeTestPassesOnOneGpu() {
        int gpus = CudaDevice.of(0).numSms() < 2 * 16 ? 2 : 1;
        List<String> out =
                run(
                        "test-internode --backend cuda --gpus "
                                + gpus
                                + " --num-tokens 3 --hidden 256"
                                + " --num-topk 2 --num-experts 32 --timeout 120");
        assertThat(out.getFirst()).contains("2 x 8 ranks");
        assertThat(out.getLast()).matches("[1-9][0-9]* passed, 0 failed");
        assertThat(out).anyMatch(line -> line.startsWith("combine (BF16) : best with"));
    }

    @Test
    void recordsHaveTheCeilingOfTheSameRun(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("n.json");
        List<String> out =
                run(
                        "bench normal --ranks 2 --num-experts 8 --sms 8,12 --repeats 3 --json "
                                + file
                                + SMALL);
        assertThat(out).anyMatch(line -> line.startsWith("bare copy, rows of 1024 bytes, push: 8"));
        JsonNode records = new ObjectMapper().readTree(file.toFile());
        assertThat(records).hasSize(18);
        for (JsonNode each : records) {
            JsonNode gpu = each.get("gpu");
            assertThat(each.get("backend").asText()).isEqualTo("cuda");
            assertThat(each.has("memoryCopyShare")).isFalse();
            assertThat(gpu.get("gpus").asInt()).isEqualTo(1);
            assertThat(gpu.get("deviceBytesPerRank").asLong()).isPositive();
            assertThat(gpu.get("callP50Micros").asDouble())
                    .isGreaterThanOrEqualTo(gpu.get("enqueueP50Micros").asDouble());
            assertThat(gpu.get("ceilingShare").asDouble())
                    .isEqualTo(
                            gpu.get("linkBytesPerSecond").asDouble()
                                    / gpu.get("ceilingBytesPerSecond").asDouble());
        }
    }

    /** 512 codes, 4 scales, and 16 bytes of flag for each of three selections. */
    @ParameterizedTest
    @ValueSource(strings = {"--ranks 2", "--nodes 2 --ranks-per-node 1"})
    void lowLatencyIsMeasuredBesideCopiesOfItsRows(String ranks, @TempDir Path folder)
            throws Exception {
        Path file = folder.resolve("l.json");
        List<String> out =
                run(
                        "bench low-latency --num-experts 8 --sms 4 --warmups 1 --repeats 2 "
                                + ranks
                                + " --measured-tokens 3 --json "
                                + file
                                + SMALL);
        assertThat(out).anyMatch(line -> line.startsWith("bare copy, rows of 576 bytes, push: 4"));
        boolean nodes = ranks.startsWith("--nodes");
        assertThat(out.getFirst().endsWith(", peer memory between nodes")).isEqualTo(nodes);
        JsonNode records = new ObjectMapper().readTree(file.toFile());
        assertThat(records).hasSizeGreaterThan(4);
        for (JsonNode each : records) {
            assertThat(each.get("p50Micros").asDouble()).isPositive();
            assertThat(each.path("network").asText()).isEqualTo(nodes ? "peer memory" : "");
            assertThat(each.get("gpu").get("ceilingBytesPerSecond").asDouble()).isPositive();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"test-intranode --num-experts 8" + SMALL, "bench put"})
    void moreMultiprocessorsThanThereAreIsWrongUsage(String command) {
        Outcome outcome = CommandLines.runLine(command + " --ranks 8 --sms 1000");
        assertThat(outcome.err())
                .matches(
                        "deepep: --sms=1000 exceeds the [0-9]+ that each of [0-9]+ ranks can have"
                                + " on .*\\R");
        assertThat(outcome.exitCode()).isEqualTo(2);
    }

    @Test
    void putsAreMeasuredByPatternAndSize(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("put.json");
        List<String> lines =
                run(
                        "bench put --ranks 3 --sizes 16,4096 --rows 5 --sms 2 --warmups 1 --repeats"
                                + " 2 --json "
                                + file);
        assertThat(lines.getFirst()).startsWith("puts with a signal over peer memory: 3 ranks on");
        JsonNode records = new ObjectMapper().readTree(file.toFile());
        assertThat(records.valueStream().map(each -> each.get("pattern").asText()))
                .containsExactly("bandwidth", "bandwidth", "latency", "latency", "sparse");
        assertThat(records.valueStream().map(each -> each.get("ranks").asInt()))
                .containsExactly(2, 2, 2, 2, 3);
        for (JsonNode each : records) {
            assertThat(each.get("p50Micros").asDouble()).isPositive();
            assertThat(each.has("p99Micros"))
                    .isNotEqualTo(each.get("pattern").asText().equals("latency"));
            assertThat(each.get("bytesPerSecond").asDouble()).isPositive();
        }
    }
}
