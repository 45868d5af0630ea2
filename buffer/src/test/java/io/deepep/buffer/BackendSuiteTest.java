package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.NormalLimits;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.RankGroup;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Suites run on the backends that are asked for, and the documents' command lines select what they
 * say.
 */
@Tag("checkout")
@Isolated("it sets system properties that others read")
class BackendSuiteTest {
    private static final Path ROOT = Path.of("..");

    /** A suite that this test runs. */
    @BackendSuite
    record Toy(TestBackend backend) {
        @Test
        void hasABackend() {
            assertThat(backend.unavailabilityReason()).isEmpty();
        }
    }

    /** A suite whose cases each rank runs. */
    @BackendSuite
    record ToyOfRanks(TestBackend backend) implements RankGroup {
        private static final Set<String> RAN = ConcurrentHashMap.newKeySet();

        @Override
        public void limit(Buffer.Builder builder) {
            builder.normal(NormalLimits.of(1, 128, 1, 12));
        }

        @Cases({"1, 3, x", "2, 2, y"})
        void ranksOfASource(String more, RankContext context) {
            RAN.add(context + more + context.rank());
        }

        @Test
        void fourRanksOfWhichOneFails(RankContext context) {
            assertThat(context.rank()).isNotEqualTo(2);
        }
    }

    /** What ran and what failed, containers too. */
    private static final class Outcome implements TestExecutionListener {
        private final List<String> passed = new ArrayList<>();
        private final List<Throwable> failures = new ArrayList<>();

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            result.getThrowable().ifPresent(failures::add);
            if (test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
                passed.add(test.getDisplayName());
            }
        }
    }

    private static Outcome run(String property, String value, List<DiscoverySelector> selectors) {
        LauncherDiscoveryRequest request =
                LauncherDiscoveryRequestBuilder.request()
                        .selectors(selectors)
                        .filters(EngineFilter.includeEngines("junit-jupiter"))
                        .build();
        Outcome outcome = new Outcome();
        String before = System.getProperty(property);
        System.setProperty(property, value);
        try {
            LauncherFactory.create().execute(request, outcome);
        } finally {
            if (before == null) {
                System.clearProperty(property);
            } else {
                System.setProperty(property, before);
            }
        }
        return outcome;
    }

    private static Outcome runToy(String property, String value) {
        return run(property, value, List.of(DiscoverySelectors.selectClass(Toy.class)));
    }

    @Test
    void oneBackendOfSeveral() {
        Outcome outcome = runToy(TestBackends.SELECT, "host");
        assertThat(outcome.failures).isEmpty();
        assertThat(outcome.passed).hasSize(1);
    }

    @Test
    void eachRankOfTheGroupRunsTheCase() {
        Outcome outcome =
                run(
                        TestBackends.SELECT,
                        "host",
                        List.of(DiscoverySelectors.selectClass(ToyOfRanks.class)));
        assertThat(ToyOfRanks.RAN)
                .containsExactlyInAnyOrder(
                        "1x3x0", "1x3x1", "1x3x2", "2x2y0", "2x2y1", "2x2y2", "2x2y3");
        assertThat(outcome.passed).hasSize(2);
        assertThat(outcome.failures).singleElement().asString().contains("rank 2: ");
    }

    @ParameterizedTest
    @ValueSource(strings = {TestBackends.REQUIRE, TestBackends.SELECT})
    void aNameThatNoBackendHas(String property) {
        Outcome outcome = runToy(property, "host,coda");
        assertThat(outcome.passed).isEmpty();
        assertThat(outcome.failures)
                .singleElement()
                .hasToString(
                        "java.lang.IllegalArgumentException: no backend is named coda; there are"
                                + " [host, cuda, cuda-virtual-nodes, cuda-nvshmem, cuda-ibgda]");
    }

    static Stream<TestBackend> missing() {
        return TestBackends.load().missing().stream();
    }

    /** Only where one is missing. */
    @ParameterizedTest(allowZeroInvocations = true)
    @MethodSource("missing")
    void aRequiredBackendThatIsMissing(TestBackend backend) {
        Outcome outcome = runToy(TestBackends.REQUIRE, backend.name());
        assertThat(outcome.passed).isEmpty();
        assertThat(outcome.failures)
                .singleElement()
                .asString()
                .contains(
                        "deepep.require names "
                                + backend.name()
                                + ", which cannot be used here: "
                                + backend.unavailabilityReason().orElseThrow());
    }

    /**
     * Iterations count after cases that do not apply are left out: those of one node come first.
     */
    @Test
    void selectionsForSanitizers() throws IOException {
        List<DiscoverySelector> selectors =
                selectors(Files.readString(ROOT.resolve("CONTRIBUTING.md")));
        assertThat(selectors).isNotEmpty();
        for (DiscoverySelector selector : selectors) {
            Outcome outcome = run(TestBackends.SELECT, "host", List.of(selector));
            String selected = selector.toIdentifier().orElseThrow().getValue();
            assertThat(outcome.failures).as(selected).isEmpty();
            int iterations = selected.indexOf('[');
            if (iterations >= 0) {
                assertThat(outcome.passed)
                        .as(selected)
                        .hasSameSizeAs(selected.substring(iterations).split(","))
                        .allMatch(name -> name.contains("=1x"));
            } else {
                assertThat(outcome.passed).as(selected).anyMatch(name -> name.contains("=1x"));
            }
        }
    }

    /** What the options of JUnit's console launcher in a shell script select. */
    private static List<DiscoverySelector> selectors(String script) {
        Map<String, String> variables = new HashMap<>();
        Matcher assignment = Pattern.compile("\\b([A-Z]+)=([\\w.$,]+)").matcher(script);
        while (assignment.find()) {
            variables.put(assignment.group(1), expand(assignment.group(2), variables));
        }
        return Pattern.compile("--select-(iteration|method)=([^\"']+)[\"']")
                .matcher(script)
                .results()
                .map(found -> found.group(1) + ":" + expand(found.group(2), variables))
                .<DiscoverySelector>map(id -> DiscoverySelectors.parse(id).orElseThrow())
                .toList();
    }

    private static String expand(String text, Map<String, String> variables) {
        return Pattern.compile("\\$([A-Z]+)")
                .matcher(text)
                .replaceAll(found -> Matcher.quoteReplacement(variables.get(found.group(1))));
    }
}
