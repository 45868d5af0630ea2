package io.deepep.bench.report;

import static io.deepep.bench.CommandLines.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.CommandLines;
import io.deepep.bench.Outcome;
import io.deepep.bench.measure.OperationRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code report readme --measure}, in a checkout whose README shows a small bench on the host. */
@Tag("checkout")
class FreshRecordsTest {
    private static final Path RECORDS = Path.of("..", "docs", "measurements");

    @TempDir private static Path shared;
    @TempDir private Path root;

    @BeforeAll
    static void record() {
        ReportFixture.record(shared);
    }

    @BeforeEach
    void makeCheckout() throws IOException {
        Path old = Files.createDirectories(records("old"));
        Files.copy(shared.resolve("host.json"), old.resolve("host.json"));
        show("times records=old/host.json sms=best", "facts records=old/host.json");
    }

    private Path records(String name) {
        return root.resolve("docs/measurements").resolve(name);
    }

    private void show(String... blocks) throws IOException {
        StringBuilder page = new StringBuilder();
        for (String block : blocks) {
            page.append("<!-- deepep:" + block + " -->\n<!-- deepep:end -->\n");
        }
        Files.writeString(root.resolve("README.md"), page);
    }

    private String readme() throws IOException {
        return Files.readString(root.resolve("README.md"));
    }

    private Outcome measure(String name) {
        return run("report", "readme", "--root", root, "--measure", name);
    }

    @Test
    void thePagesShowTheSameMeasuredAgain() throws IOException {
        measure("new").requirePassed();
        assertThat(readme())
                .contains("times records=new/host.json sms=best -->\n| operation ")
                .contains("facts records=new/host.json -->\n")
                .doesNotContain("old/host.json");
        assertThat(shapes(records("new/host.json")))
                .isNotEmpty()
                .isEqualTo(shapes(records("old/host.json")));
        assertThat(records("new/host.json"))
                .content()
                .isNotEqualTo(Files.readString(records("old/host.json")));
        run("report", "readme", "--check", "--root", root).requirePassed();
    }

    private static List<String> shapes(Path file) {
        return BenchRun.read(file).records().stream().map(FreshRecordsTest::shape).toList();
    }

    private static String shape(OperationRecord each) {
        return String.join(
                " ",
                List.of(
                        each.backend() + each.op() + each.dtype(),
                        each.ranks() + "/" + each.nodes() + "/" + each.tokens(),
                        each.hidden() + "/" + each.topk() + "/" + each.experts(),
                        each.sms() + "/" + each.repeats()));
    }

    /** The second of two cannot be measured: the first does not replace what is shown either. */
    @Test
    void allOfABackendOrNone() throws IOException {
        String wrong = Files.readString(records("old/host.json"));
        Files.writeString(
                records("old/wrong.json"),
                wrong.replaceAll("\"experts\" *: *\\d+", "\"experts\": 7"));
        show("times records=old/host.json", "times records=old/wrong.json");
        String before = readme();
        Outcome outcome = measure("new");
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.err()).contains("7", "nothing could be measured");
        assertThat(outcome.out()).contains("records of the backend host stay as they were");
        assertThat(readme()).isEqualTo(before);
        assertThat(records("new")).doesNotExist();
    }

    /** They would be written to one file, and it takes hours until the second is measured. */
    @Test
    void recordsOfOneNameAreRefusedBeforeAnyIsMeasured() throws IOException {
        Files.createDirectories(records("older"));
        Files.copy(records("old/host.json"), records("older/host.json"));
        show("times records=old/host.json", "times records=older/host.json");
        Outcome outcome = measure("new");
        outcome.requireRefused("have the name of older/host.json; rename one");
        assertThat(outcome.out()).isEmpty();
        assertThat(records("new")).doesNotExist();
    }

    @Test
    void recordsThatAreMissingAreNamedBeforeAnyIsMeasured() throws IOException {
        show("times records=old/host.json", "times records=old/none.json");
        Outcome outcome = measure("new");
        outcome.requireRefused("cannot read", "old/none.json");
        assertThat(outcome.out()).isEmpty();
        assertThat(records("new")).doesNotExist();
    }

    @ParameterizedTest
    @CsvSource({
        "old, cannot make a new folder",
        "../new, is not the name of a folder",
        ".., is not the name of a folder"
    })
    void namesAreThoseOfNewFolders(String name, String complaint) throws IOException {
        String before = readme();
        measure(name).requireRefused(complaint);
        assertThat(readme()).isEqualTo(before);
    }

    @Test
    void checkingMeasuresNothing() {
        run("report", "readme", "--root", root, "--check", "--measure", "new")
                .requireRefused("--check");
        assertThat(records("new")).doesNotExist();
    }

    @Test
    void figuresOfTheHostAreOfOneCommitToo() throws IOException {
        String other = Files.readString(records("old/host.json"));
        Files.writeString(
                records("old/other.json"),
                other.replaceAll("\"commit\" *: *\"[^\"]*\"", "\"commit\": \"0123\""));
        show("times records=old/host.json", "times records=old/other.json");
        run("report", "readme", "--root", root)
                .requireRefused("old/other.json is of commit 0123", "--measure");
    }

    /** What the project's own pages show is measured by commands that there are. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "2026-11-26-4xh100/normal.json; bench normal --backend cuda --nodes 1 --ranks-per-node 4"
                        + " --num-tokens 4096 --hidden 7168 --num-topk 8 --num-experts 256"
                        + " --sms 12,16,20,24 --repeats 30",
                "2026-11-26-4xh100/normal-2x2.json; bench normal --backend cuda --nodes 2 --ranks-per-node 2"
                        + " --num-tokens 4096 --hidden 7168 --num-topk 8 --num-experts 256"
                        + " --sms 16,24 --repeats 30",
                "2026-11-26-4xh100/low-latency.json; bench low-latency --backend cuda --nodes 1 --ranks-per-node 4"
                        + " --num-tokens 128 --measured-tokens 1,8,32,128 --hidden 7168 --num-topk 8"
                        + " --num-experts 256 --sms 132 --repeats 40",
                "2026-11-26-4xh100/decode.json; bench decode --backend cuda --nodes 1 --ranks-per-node 4"
                        + " --num-tokens 128 --measured-tokens 1,8,32,128 --hidden 7168 --num-topk 8"
                        + " --num-experts 256 --sms 132 --repeats 40 --layers 60"
            })
    void commandsAreThoseOfTheShapes(String file, String command) {
        List<String> words = FreshRecords.command(JsonRecords.parse(RECORDS.resolve(file)));
        assertThat(String.join(" ", words)).isEqualTo(command);
        CommandLines.parse(words.toArray(String[]::new));
    }
}
