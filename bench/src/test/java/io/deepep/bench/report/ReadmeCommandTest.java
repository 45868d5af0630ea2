package io.deepep.bench.report;

import static io.deepep.bench.CommandLines.run;
import static io.deepep.bench.report.ReportFixture.GPU_RECORDS;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Outcome;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code report readme}, and that the project's own documentation shows what its records say. */
@Tag("checkout")
class ReadmeCommandTest {
    private static final Path CHECKOUT = Path.of("..");

    @Test
    void theDocumentationIsUpToDate() throws IOException {
        assertThat(Files.readString(CHECKOUT.resolve("README.md"))).contains("<!-- deepep:times ");
        Outcome outcome = run("report", "readme", "--check", "--root", CHECKOUT);
        assertThat(outcome.out()).isEmpty();
        outcome.requirePassed();
    }

    /** A checkout with one record, and a README that asks for {@code block}. */
    private static Path checkout(Path root, String block) throws IOException {
        Path records = Files.createDirectories(root.resolve("docs/measurements/run"));
        Files.copy(GPU_RECORDS, records.resolve("r.json"));
        Files.writeString(
                root.resolve("README.md"),
                "before\n<!-- deepep:" + block + " -->\nold\n<!-- deepep:end -->\nafter\n");
        return root;
    }

    @Test
    void whatIsOutOfDateIsFoundAndMended(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "times records=run/r.json sms=24");
        Outcome stale = run("report", "readme", "--check", "--root", root);
        assertThat(stale.exitCode()).isEqualTo(1);
        assertThat(stale.out()).contains("README.md is out of date");
        assertThat(Files.readString(root.resolve("README.md"))).contains("old");
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(root.resolve("README.md")))
                .startsWith("before\n<!-- deepep:times records=run/r.json sms=24 -->\n| operation ")
                .contains("| dispatch BF16 | 24 | 468 µs | 342 GB/s | 97 % |\n")
                .doesNotContain("old")
                .endsWith("<!-- deepep:end -->\nafter\n");
        run("report", "readme", "--check", "--root", root).requirePassed();
        Path record = root.resolve("docs/measurements/run/r.json");
        Files.writeString(record, Files.readString(record).replace("467.", "999."));
        Files.writeString(record, Files.readString(record).replace("468.", "999."));
        assertThat(run("report", "readme", "--check", "--root", root).exitCode()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--check", "--measure=new"})
    void pagesThatAreNotUtf8AreNamed(String option, @TempDir Path folder) throws IOException {
        Path root = checkout(folder, "times records=run/r.json sms=24");
        Path page = root.resolve("docs/page.md");
        Files.writeString(page, "größer", StandardCharsets.ISO_8859_1);
        run("report", "readme", option, "--root", root)
                .requireRefused("cannot read " + page + ": it is not UTF-8");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "sweep records=run/r.json; | SMs | 8 | 12 | 16 | 24 | 32 | 64 |",
                "sweep records=run/r.json; | dispatch FP8 | 300 (78 %) | 253 (92 %) |",
                "shapes records=run sms=8; | r | 4096, 4 | 300 µs, 78 % |",
                "facts records=run/r.json; | Commit | `2264fca0e8d8` |",
                "times records=run/r.json; | dispatch FP8 | 32 | 251 µs |"
            })
    void views(String block, String row, @TempDir Path folder) throws IOException {
        Path root = checkout(folder, block);
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(root.resolve("README.md"))).contains("\n" + row);
    }

    /** Records of other forms: few tokens, the decoding loop, JMH. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "facts records=ll.json; | Shape | 1 to 128 tokens per rank, hidden 7168,",
                "tokens records=ll.json sms=132; | tokens | dispatch BF16 | dispatch FP8 |",
                "tokens records=ll.json sms=132; | 128 | 15.5 | 14.5 |",
                "tokens records=ll.json sms=132 what=call; | 128 | 20.7 | 19.9 |",
                "plot records=ll.json sms=132 file=p.svg; ![Time by operation: low-latency dispatch BF16, tokens: 1 ",
                "decode records=decode.json; | 8 | 132 | 16.0 | 16.1 | 16.0 | 3.02 | 2.82 | 0.0 |",
                "jmh records=jmh.json; | `Calls.one` | rank 3 | 2.5 µs/op | ± 0.1 | 0.4 ± 7.0 |",
                "jmh records=jmh.json; | `Calls.two` |  | 7.0 ns/op |  | 3.0 |"
            })
    void otherRecords(String block, String row, @TempDir Path folder) throws IOException {
        Path root = checkout(folder, block);
        Path records = root.resolve("docs/measurements");
        Path lowLatency = CHECKOUT.resolve("docs/measurements/2026-11-21-low-latency-1xh200");
        Files.copy(lowLatency.resolve("operations-1-rank.json"), records.resolve("ll.json"));
        Files.copy(lowLatency.resolve("decode-1-rank.json"), records.resolve("decode.json"));
        Files.writeString(
                records.resolve("jmh.json"),
                """
                [{"benchmark": "a.b.Calls.one", "params": {"rank": "3"},
                  "primaryMetric": {"score": 2.5, "scoreError": 0.1, "scoreUnit": "us/op"},
                  "secondaryMetrics": {"gc.alloc.rate.norm": {"score": 0.42, "scoreError": 7}}},
                 {"benchmark": "a.b.Calls.two",
                  "primaryMetric": {"score": 7, "scoreError": "NaN", "scoreUnit": "ns/op"},
                  "secondaryMetrics": {"gc.alloc.rate.norm": {"score": 3, "scoreError": "NaN"}}}]
                """);
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(root.resolve("README.md"))).contains("\n" + row);
    }

    /** Nothing is taken for text, or text for a table. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    facts records=run/r.json sms=24                    | README.md: deepep:facts takes no sms=
                    plot records=run/r.json file=p.svg width=3 dpi=9   | README.md: deepep:plot takes no dpi=, width=
                    Facts records=run/r.json                           | README.md: <!-- deepep:Facts records=run/r.json --> is not one
                    facts records=run/r.json Sms=24                    | README.md: <!-- deepep:facts records=run/r.json Sms=24 --> is not
                    end                                                | README.md: <!-- deepep:end --> is not one of
                    jmh records=r -->~<!-- deepep:jmh records=r        | README.md: <!-- deepep:jmh records=r --> is not one of
                    """)
    void wrongBlocksAreRefused(String block, String complaint, @TempDir Path folder)
            throws IOException {
        Path root = checkout(folder, block.replace('~', '\n'));
        String before = Files.readString(root.resolve("README.md"));
        run("report", "readme", "--root", root).requireRefused("deepep: " + complaint);
        assertThat(Files.readString(root.resolve("README.md"))).isEqualTo(before);
    }

    @Test
    void examplesInCodeAreLeftAlone(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "facts records=run/r.json");
        String example = "```\n<!-- deepep:pie -->\n<!-- deepep:end -->\n```\n";
        Path readme = root.resolve("README.md");
        Files.writeString(readme, example + Files.readString(readme));
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(readme)).startsWith(example).contains("2264fca0e8d8");
    }

    @Test
    void plotsAreDrawnBesideTheText(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "plot records=run/r.json what=share file=docs/p.svg");
        Outcome missing = run("report", "readme", "--check", "--root", root);
        assertThat(missing.exitCode()).isEqualTo(1);
        assertThat(missing.out()).contains("p.svg is out of date");
        assertThat(root.resolve("docs/p.svg")).doesNotExist();
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(root.resolve("README.md")))
                .contains("![Share of the ceiling: dispatch FP8 93 %; ", "(docs/p.svg)");
        assertThat(root.resolve("docs/p.svg")).content().startsWith("<svg ");
        run("report", "readme", "--check", "--root", root).requirePassed();
        Files.writeString(root.resolve("docs/p.svg"), "<svg of another time/>");
        assertThat(run("report", "readme", "--check", "--root", root).exitCode()).isEqualTo(1);
    }

    @Test
    void longTimesAreInMilliseconds(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "plot records=run/r.json file=p.svg");
        Path record = root.resolve("docs/measurements/run/r.json");
        Files.writeString(
                record,
                Files.readString(record)
                        .replaceAll("\"p50Micros\" *: *[^,]+", "\"p50Micros\": 12500"));
        run("report", "readme", "--root", root).requirePassed();
        assertThat(Files.readString(root.resolve("README.md"))).contains("dispatch FP8 12.5 ms; ");
        assertThat(root.resolve("p.svg"))
                .content()
                .contains("<title>dispatch FP8: 12.5</title>", "ms, median");
    }

    /** Ranks of several hosts have no bare copy. */
    @Test
    void sharesOfNoCeilingAreRefused(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "plot records=run/r.json what=share file=p.svg");
        Path record = root.resolve("docs/measurements/run/r.json");
        Files.writeString(
                record, Files.readString(record).replaceAll("\"ceilingShare\" *: *[^,]+,", ""));
        run("report", "readme", "--root", root)
                .requireRefused(
                        "what=share needs a ceiling, which run/r.json lacks; use what=time");
        assertThat(root.resolve("p.svg")).doesNotExist();
    }

    @Test
    void figuresOfAModeOnReadmeAreOfOneCommit(@TempDir Path folder) throws IOException {
        Path root = checkout(folder, "times records=run/r.json sms=24");
        Path records = root.resolve("docs/measurements/run");
        String other = Files.readString(records.resolve("r.json")).replace("2264fca0e8d8", "0123");
        Files.writeString(records.resolve("other.json"), other);
        Files.writeString(
                root.resolve("README.md"),
                Files.readString(root.resolve("README.md"))
                        + "<!-- deepep:facts records=run/other.json -->\n<!-- deepep:end -->\n");
        run("report", "readme", "--root", root)
                .requireRefused("run/other.json is of commit 0123", "are of 2264fca0e8d8");
        Files.writeString(
                records.resolve("other.json"), other.replace("\"op\" : \"", "\"op\" : \"ll-"));
        run("report", "readme", "--root", root).requirePassed();
    }

    @ParameterizedTest
    @CsvSource({
        "pie records=run/r.json, deepep:pie is not one of facts",
        "times sms=24, lacks records=",
        "times records=run/none.json, cannot read",
        "decode records=run/r.json, is not what deepep bench decode --json writes",
        "jmh records=run/none.json, cannot read",
        "times records=run/r.json sms=7, has sms=7",
        "shapes records=nowhere, cannot list"
    })
    void wrongBlocksAreNamed(String block, String complaint, @TempDir Path folder)
            throws IOException {
        run("report", "readme", "--root", checkout(folder, block))
                .requireRefused("README.md", complaint);
    }
}
