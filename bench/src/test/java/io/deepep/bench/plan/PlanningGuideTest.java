package io.deepep.bench.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What the guide shows is what the commands print. */
@Tag("checkout")
final class PlanningGuideTest {
    private static final Path GUIDE = Path.of("../docs/guides/planning.md");

    private static String run(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode = Main.run(arguments, new PrintWriter(out), new PrintWriter(err));
        assertThat(err.toString()).isEmpty();
        assertThat(exitCode).isZero();
        return out.toString();
    }

    @Test
    void comparisonWithMeasurements() throws Exception {
        String printed = run("plan", "compare");
        assertThat(printed.lines()).filteredOn(line -> line.startsWith("| ")).hasSize(63);
        assertThat(Files.readString(GUIDE))
                .as("the table of the guide; ./deepep plan compare prints it")
                .contains("./deepep plan compare", printed);
    }

    @Test
    void planOfFourNodes() throws Exception {
        assertThat(Files.readString(GUIDE))
                .as("the plan in the guide; ./deepep plan --nodes 4 prints it")
                .contains("./deepep plan --nodes 4\n", run("plan", "--nodes", "4"));
    }
}
