package io.deepep.bench.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("checkout")
class StartTableTest {
    private static final Path PAGE = Path.of("../docs/networks.md");

    @Test
    void thePageShowsWhatTheCommandPrints() throws Exception {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode =
                Main.run(
                        new String[] {"plan", "start"}, new PrintWriter(out), new PrintWriter(err));
        assertThat(err.toString()).isEmpty();
        assertThat(exitCode).isZero();
        assertThat(out.toString().lines()).hasSize(10);
        assertThat(Files.readString(PAGE))
                .as("the table of the page; ./deepep plan start prints it")
                .contains("./deepep plan start", out.toString());
    }
}
