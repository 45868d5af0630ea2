package io.deepep.bench.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The comparison in the guide is what the command prints. */
final class PlanningGuideTest {
    private static final Path GUIDE = Path.of("../docs/guides/planning.md");

    @Test
    void theGuideShowsWhatTheCommandPrints() throws Exception {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode =
                Main.run(
                        new String[] {"plan", "compare"},
                        new PrintWriter(out),
                        new PrintWriter(err));
        assertThat(err.toString()).isEmpty();
        assertThat(exitCode).isZero();
        assertThat(out.toString().lines()).filteredOn(line -> line.startsWith("| ")).hasSize(52);
        assertThat(Files.readString(GUIDE))
                .as("the table of the guide; ./deepep plan compare prints it anew")
                .contains("./deepep plan compare", out.toString());
    }
}
