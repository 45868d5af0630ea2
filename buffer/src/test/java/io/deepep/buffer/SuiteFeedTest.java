package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

class SuiteFeedTest {
    /** Not found by a scan, as it is no class of tests by itself. */
    static class Toy {
        @ParameterizedTest
        @ValueSource(ints = {1, 2, 3})
        void one(int number) {
            assertThat(number).isNotEqualTo(2);
        }

        @Test
        void two() {
            Assumptions.abort("not here");
        }
    }

    private static List<String> feed(boolean wanted) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        LauncherFactory.create()
                .execute(
                        LauncherDiscoveryRequestBuilder.request()
                                .selectors(DiscoverySelectors.selectClass(Toy.class))
                                .filters(EngineFilter.includeEngines("junit-jupiter"))
                                .build(),
                        new SuiteFeed(wanted, new PrintStream(out, true, StandardCharsets.UTF_8)));
        return out.toString(StandardCharsets.UTF_8).lines().toList();
    }

    @Test
    void aClassIsTalliedWhenItEndsAndAFailureIsToldAtOnce() {
        List<String> lines = feed(true);
        assertThat(lines).hasSize(2);
        assertThat(lines.getFirst())
                .startsWith("FAILED SuiteFeedTest$Toy > one(int) > [2] number=2: ")
                .contains("not to be equal to");
        assertThat(lines.getLast())
                .matches("SuiteFeedTest\\$Toy +2 passed +1 failed +1 aborted +\\d+\\.\\d s");
    }

    @Test
    void nothingIsSaidWhereNobodyAsks() {
        assertThat(feed(false)).isEmpty();
    }
}
