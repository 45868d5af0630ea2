package io.deepep.bench.plan;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What the guide shows is what the commands print. */
@Tag("checkout")
final class PlanningGuideTest {
    private static final Path GUIDE = Path.of("../docs/guides/planning.md");

    @Test
    void comparisonWithMeasurements() throws Exception {
        String printed = runLine("plan compare").requirePassed().out();
        assertThat(printed.lines()).filteredOn(line -> line.startsWith("| ")).hasSize(63);
        assertThat(Files.readString(GUIDE))
                .as("the table of the guide; ./deepep plan compare prints it")
                .contains("./deepep plan compare", printed);
    }

    @Test
    void planOfFourNodes() throws Exception {
        assertThat(Files.readString(GUIDE))
                .as("the plan in the guide; ./deepep plan --nodes 4 prints it")
                .contains(
                        "./deepep plan --nodes 4\n",
                        "```\n" + runLine("plan --nodes 4").requirePassed().out() + "```\n");
    }
}
