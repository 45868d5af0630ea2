package io.deepep.bench.plan;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("checkout")
class StartTableTest {
    private static final Path PAGE = Path.of("../docs/networks.md");

    @Test
    void thePageShowsWhatTheCommandPrints() throws Exception {
        String printed = runLine("plan start").requirePassed().out();
        assertThat(printed.lines()).hasSize(10);
        assertThat(Files.readString(PAGE))
                .as("the table of the page; ./deepep plan start prints it")
                .contains("./deepep plan start", printed);
    }
}
