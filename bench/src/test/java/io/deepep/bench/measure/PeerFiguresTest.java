package io.deepep.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.bench.CommandLines;
import io.deepep.bench.measure.PeerFigures.Figure;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PeerFiguresTest {
    private static final String FIGURE =
            """
            {"library": "Other 2", "op": "dispatch", "dtype": "bf16", "ranks": 4, "nodes": 1, "tokens": 64,
             "hidden": 7168, "topk": 8, "experts": 256, "micros": 50.0}""";

    @TempDir private Path folder;

    private PeerFigures read(String text) throws IOException {
        return PeerFigures.read(Files.writeString(folder.resolve("peer.json"), text));
    }

    private static Figure ours(String op, int tokens, int sms, double micros) {
        return new Figure(null, op, "bf16", 4, 1, tokens, 7168, 8, 256, sms, micros);
    }

    private static String printed(PeerFigures peers, Figure... ours) {
        return CommandLines.printed(console -> peers.print(console, List.of(ours)));
    }

    @Test
    void theFastestOfOursStandsBesideAFigureForAnyNumberOfMultiprocessors() throws IOException {
        String table =
                printed(
                        read("[" + FIGURE + "]"),
                        ours("dispatch", 64, 16, 45),
                        ours("dispatch", 64, 24, 40),
                        ours("dispatch", 128, 24, 30),
                        ours("combine-plain", 64, 24, 20));
        assertThat(table).contains("1 of 1 figures of peer.json");
        assertThat(table.lines().filter(line -> line.contains("Other 2")))
                .singleElement()
                .asString()
                .matches(".*\\| +24 +\\| +40\\.0 +\\| Other 2 \\| +50\\.0 +\\| +0\\.80 +\\|.*");
    }

    @Test
    void aFigureForSomeMultiprocessorsStandsBesideOursOfAsMany() throws IOException {
        PeerFigures peers =
                read("[" + FIGURE.replace("\"micros\"", "\"sms\": 16, \"micros\"") + "]");
        assertThat(printed(peers, ours("dispatch", 64, 16, 45), ours("dispatch", 64, 24, 40)))
                .contains("45.0", "0.90")
                .doesNotContain("40.0");
        assertThat(printed(peers, ours("dispatch", 64, 24, 40))).contains("0 of 1 figures");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ranks", "nodes", "tokens", "hidden", "topk", "experts"})
    void otherWorkIsNotCompared(String field) throws IOException {
        String other = FIGURE.replaceFirst("(\"" + field + "\": )", "$11");
        assertThat(printed(read("[" + other + "]"), ours("dispatch", 64, 16, 45)))
                .contains("0 of 1 figures");
    }

    @ParameterizedTest
    @ValueSource(strings = {"dispatch", "bf16"})
    void otherOperationsAndTypesAreNotCompared(String ours) throws IOException {
        PeerFigures peers = read("[" + FIGURE.replace(ours, "other") + "]");
        assertThat(printed(peers, ours("dispatch", 64, 16, 45))).contains("0 of 1 figures");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "[]",
                "null",
                "{}",
                "[null]",
                "[{}]",
                "not JSON",
                "[{\"library\": \"Other\", \"time\": 3}]"
            })
    void otherFilesAreRefused(String text) {
        assertThatThrownBy(() -> read(text))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("--peer=");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"micros\": 0",
                "\"micros\": -1",
                "\"micros\": \"NaN\"",
                "\"sms\": 0, \"micros\": 1"
            })
    void figuresThatSayNothingAreRefusedByNumber(String end) {
        String wrong = FIGURE.replace("\"micros\": 50.0", end);
        assertThatThrownBy(() -> read("[" + FIGURE + "," + wrong + "]"))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("figure 2 lacks a value");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "library", "op", "dtype", "ranks", "nodes", "tokens", "hidden", "topk", "experts"
            })
    void figuresThatLackAFieldAreRefused(String field) {
        String wrong = FIGURE.replaceFirst("\"" + field + "\": [^,]+,", "");
        assertThat(wrong).isNotEqualTo(FIGURE);
        assertThatThrownBy(() -> read("[" + wrong + "]"))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("figure 1 lacks a value");
    }

    @Test
    void aFileThatIsNotThereIsRefused() {
        assertThatThrownBy(() -> PeerFigures.read(folder.resolve("absent.json")))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("cannot read --peer=");
    }

    /** The figures that the documentation points to can be read. */
    @Tag("checkout")
    @Test
    void theFiguresInTheDocumentation() {
        PeerFigures peers =
                PeerFigures.read(Path.of("../docs/measurements/peers/2026-11-22-4xh200.json"));
        assertThat(peers.figures())
                .hasSize(24)
                .allMatch(each -> each.library().startsWith("DeepEP"));
    }
}
