package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.routing.RoutingFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@code bench} writes. */
final class BenchCommandTest {
    private static final String SMALL =
            " --backend host --num-tokens 6 --hidden 256 --num-topk 2 --num-experts 8 --warmups 1"
                    + " --repeats 3 --json ";

    private static JsonNode records(Path file, String command) throws IOException {
        String out = CommandLines.runLine(command + SMALL + file).requirePassed().out();
        assertThat(out.strip().lines().toList().getLast()).matches("[0-9]+ passed, 0 failed");
        assertThat(out).contains("p50 us", "of copy", "memory copy");
        return new ObjectMapper().readTree(file.toFile());
    }

    private static JsonNode find(JsonNode records, String op, String dtype) {
        for (JsonNode each : records) {
            if (each.get("op").asText().equals(op) && each.get("dtype").asText().equals(dtype)) {
                return each;
            }
        }
        throw new AssertionError("no record of " + op + " " + dtype + " in " + records);
    }

    @Test
    void normalModeWritesARecordPerOperation(@TempDir Path folder) throws Exception {
        JsonNode records = records(folder.resolve("n.json"), "bench normal --nodes 2 --ranks 2");
        assertThat(records).hasSize(8);
        JsonNode dispatch = find(records, "dispatch", "bf16");
        assertThat(dispatch.get("backend").asText()).isEqualTo("host");
        assertThat(dispatch.get("ranks").asInt()).isEqualTo(4);
        assertThat(dispatch.get("nodes").asInt()).isEqualTo(2);
        assertThat(dispatch.get("tokens").asInt()).isEqualTo(6);
        assertThat(dispatch.get("hidden").asInt()).isEqualTo(256);
        assertThat(dispatch.get("topk").asInt()).isEqualTo(2);
        assertThat(dispatch.get("experts").asInt()).isEqualTo(8);
        assertThat(dispatch.get("sms").asInt()).isEqualTo(20);
        assertThat(dispatch.get("repeats").asInt()).isEqualTo(3);
        double p50 = dispatch.get("p50Micros").asDouble();
        assertThat(p50).isPositive();
        assertThat(dispatch.get("p99Micros").asDouble()).isGreaterThanOrEqualTo(p50);
        assertThat(dispatch.get("maxMicros").asDouble())
                .isGreaterThanOrEqualTo(dispatch.get("p99Micros").asDouble());
        assertThat(dispatch.get("commit").asText()).isNotEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    normal      | dispatch-cached            | dispatch-cached fp8_e4m3, dispatch-cached bf16
                    normal      | combine-zero-copy,combine  | combine-zero-copy bf16, combine fp8_e4m3, combine-zero-copy fp8_e4m3
                    low-latency | ll-combine-fp8             | ll-combine-fp8 bf16
                    """)
    void onlyTheOperationsThatAreNamedAreMeasured(
            String mode, String names, String measured, @TempDir Path folder) throws Exception {
        String command = "bench %s --ranks 2 --operations %s".formatted(mode, names);
        List<String> found = new ArrayList<>();
        for (JsonNode each : records(folder.resolve("r.json"), command)) {
            found.add(each.get("op").asText() + " " + each.get("dtype").asText());
        }
        assertThat(String.join(", ", found)).isEqualTo(measured);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    normal --operations combine,copy | --operations=copy is not an operation of this mode; there are dispatch, dispatch-cached
                    normal --operations combine-plain       | --operations=combine-plain: nothing to measure with these on the HOST backend
                    normal --operations dispatch --profile p | --profile needs all operations; leave --operations out
                    low-latency --operations dispatch       | --operations=dispatch is not an operation of this mode; there are ll-dispatch
                    """)
    void operationsThatAreNotThereAreRefused(String command, String message) {
        CommandLines.runLine(
                        "bench "
                                + command
                                + " --backend host --num-tokens 6 --hidden 256 --num-topk 2"
                                + " --num-experts 8 --ranks 2")
                .requireRefused(message);
    }

    /** Nobody has figures of such puts. */
    @Test
    void putsAreNotCompared() {
        CommandLines.runLine("bench put --peer figures.json")
                .requireRefused("Unknown options: '--peer'");
    }

    @Test
    void bytesFollowTheRoutingAndTheDtype(@TempDir Path folder) throws Exception {
        JsonNode records = records(folder.resolve("n.json"), "bench normal --nodes 2 --ranks 2");
        JsonNode bf16 = find(records, "dispatch", "bf16");
        JsonNode fp8 = find(records, "dispatch", "fp8_e4m3");
        long rows = bf16.get("logicalBytes").asLong() / 512;
        assertThat(rows).isBetween(24L, 48L);
        assertThat(bf16.get("logicalBytes").asLong()).isEqualTo(rows * 512);
        assertThat(fp8.get("logicalBytes").asLong()).isEqualTo(rows * (256 + 2 * 4));
        assertThat(bf16.get("movedBytes").asLong()).isEqualTo((rows + 24) * 512);
        assertThat(bf16.get("wireBytes").asLong())
                .isEqualTo(bf16.get("nvlinkBytes").asLong() + bf16.get("rdmaBytes").asLong());
        assertThat(bf16.get("rdmaBytes").asLong()).isPositive();
        // What was dispatched as FP8 comes home as FP8 by the same ways.
        for (String op : List.of("combine", "combine-zero-copy")) {
            assertThat(find(records, op, "fp8_e4m3").get("wireBytes"))
                    .isEqualTo(fp8.get("wireBytes"));
        }
        // The 24 tokens are BF16 again, and so are rows that the call itself casts.
        assertThat(find(records, "combine", "fp8_e4m3").get("movedBytes").asLong())
                .isEqualTo((rows + 24) * 512);
        assertThat(find(records, "combine-zero-copy", "fp8_e4m3").get("movedBytes").asLong())
                .isEqualTo(rows * (256 + 2 * 4) + 24 * 512);
    }

    @Test
    void lowLatencyModeWritesARecordPerOperation(@TempDir Path folder) throws Exception {
        JsonNode records = records(folder.resolve("l.json"), "bench low-latency --ranks 2");
        assertThat(records).hasSize(10);
        assertThat(find(records, "ll-dispatch", "fp8_ue8m0").get("logicalBytes").asLong())
                .isEqualTo(2L * 6 * 2 * (256 + 2 * 4));
        // 12 tokens are read, and 24 rows with two scales in one element are written.
        assertThat(find(records, "ll-dispatch", "fp8_ue8m0").get("movedBytes").asLong())
                .isEqualTo(12 * 512 + 24 * (256 + 4));
        assertThat(find(records, "ll-combine-logfmt", "bf16").get("logicalBytes").asLong())
                .isEqualTo(2L * 6 * 2 * (256 * 10 / 8 + 2 * 8));
        assertThat(find(records, "ll-combine-fp8", "bf16").get("logicalBytes").asLong())
                .isEqualTo(2L * 6 * 2 * (256 + 2 * 4));
        // A row comes back from each rank, as one has gone to each.
        assertThat(find(records, "ll-combine-pre-reduced", "bf16").get("wireBytes"))
                .isEqualTo(find(records, "ll-dispatch", "bf16").get("wireBytes"));
    }

    /** The first token of a rank selects one expert, the others two. */
    @Test
    void fewerTokensAreTheFirstOfARecordedRouting(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("l.json");
        Path routing =
                RoutingFiles.npyI64(
                        folder.resolve("r.npy"),
                        new long[] {2, 3, 2},
                        new long[] {0, -1, 1, 2, 3, 4, 5, -1, 6, 7, 1, 2});
        CommandLines.runLine(
                        "bench low-latency --ranks 2 --backend host --hidden 256 --num-experts 8"
                                + " --warmups 0 --repeats 1 --operations ll-dispatch"
                                + " --measured-tokens 1,3 --routing "
                                + routing
                                + " --json "
                                + file)
                .requirePassed();
        JsonNode records = new ObjectMapper().readTree(file.toFile());
        assertThat(records).hasSize(8);
        JsonNode one = records.get(0);
        assertThat(one.get("tokens").asInt()).isEqualTo(1);
        assertThat(one.get("logicalBytes").asLong()).isEqualTo(2 * 2 * 256);
        assertThat(one.get("routing").get("expertTokens").toString())
                .isEqualTo("[1,0,0,0,0,1,0,0]");
        JsonNode all = records.get(4);
        assertThat(all.get("tokens").asInt()).isEqualTo(3);
        assertThat(all.get("logicalBytes").asLong()).isEqualTo(10 * 2 * 256);
        assertThat(all.get("routing").get("expertTokens").toString())
                .isEqualTo("[1,2,2,1,1,1,1,1]");
        assertThat(records.get(1).has("routing")).isFalse();
    }

    /**
     * The loop in each format, beside figures of another library of which one is about this work.
     */
    @ParameterizedTest
    @CsvSource({"bf16,false", "fp8,false", "logfmt,false", "bf16,true", "fp8,true"})
    void theDecodingLoop(String format, boolean preReduced, @TempDir Path folder) throws Exception {
        String figure =
                """
                {"library": "Other", "op": "decode%s", "dtype": "%s", "ranks": 2, "nodes": 2,
                 "tokens": 6, "hidden": %d, "topk": 2, "experts": 8, "micros": 1}""";
        String op = preReduced ? "-pre-reduced" : "";
        Path peer =
                Files.writeString(
                        folder.resolve("peer.json"),
                        "[%s,%s]"
                                .formatted(
                                        figure.formatted(op, format, 256),
                                        figure.formatted(op, format, 512)));
        Path json = folder.resolve("d.json");
        String command =
                "bench decode --nodes 2 --ranks 1 --layers 3 --combine %s --peer %s %s"
                        .formatted(format, peer, preReduced ? "--pre-reduced" : "");
        String out = CommandLines.runLine(command + SMALL + json).requirePassed().out();
        assertThat(out)
                .contains("combine in " + format.toUpperCase(Locale.ROOT))
                .contains("1 of 2 figures of peer.json", "ours / theirs", "| Other");
        JsonNode record = new ObjectMapper().readTree(json.toFile()).get(0);
        assertThat(record.get("nodes").asInt()).isEqualTo(2);
        assertThat(record.get("combineFormat").asText()).isEqualTo(format);
        assertThat(record.get("preReduced").asBoolean()).isEqualTo(preReduced);
    }
}
