package io.deepep.testkit.conformance;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ClassTemplateInvocationContext;
import org.junit.jupiter.api.extension.ClassTemplateInvocationContextProvider;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.support.TypeBasedParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Runs a {@link BackendSuite} on the backends that are here. Gives the backend to constructors and
 * to factories of arguments; says at the end of the run which backends were missing.
 */
final class OnEachBackend implements ClassTemplateInvocationContextProvider {
    private static final ExtensionContext.Namespace STORE =
            ExtensionContext.Namespace.create(OnEachBackend.class);

    /** The backend that the suite of {@code context} is running on. */
    static TestBackend backendOf(ExtensionContext context) {
        return context.getStore(STORE).get(TestBackend.class, TestBackend.class);
    }

    @Override
    public boolean supportsClassTemplate(ExtensionContext context) {
        return true;
    }

    @Override
    public boolean mayReturnZeroClassTemplateInvocationContexts(ExtensionContext context) {
        return true;
    }

    @Override
    public Stream<OnBackend> provideClassTemplateInvocationContexts(ExtensionContext context) {
        TestBackends backends = TestBackends.load();
        context.getRoot()
                .getStore(STORE)
                .getOrComputeIfAbsent(Missing.class, _ -> new Missing(backends.missing()));
        BackendSuite suite =
                AnnotationSupport.findAnnotation(context.getRequiredTestClass(), BackendSuite.class)
                        .orElseThrow();
        return backends.usable().stream()
                .filter(backend -> suite.only().isEmpty() || suite.only().equals(backend.name()))
                .filter(backend -> backend.hasGraphs() || !suite.graphs())
                .filter(
                        backend ->
                                ProcessRanks.areOnePerProcess() || !backend.needsProcessPerRank())
                .map(OnBackend::new);
    }

    /** The suite on one backend. */
    record OnBackend(TestBackend backend) implements ClassTemplateInvocationContext {
        @Override
        public String getDisplayName(int invocationIndex) {
            return backend.name();
        }

        @Override
        public void prepareInvocation(ExtensionContext context) {
            context.getStore(STORE).put(TestBackend.class, backend);
        }

        @Override
        public List<Extension> getAdditionalExtensions() {
            return List.of(new Resolver(backend), new OnEachRank(backend));
        }
    }

    /** Gives the backend to whatever has a parameter for it. */
    private static final class Resolver extends TypeBasedParameterResolver<TestBackend> {
        private final TestBackend backend;

        Resolver(TestBackend backend) {
            this.backend = backend;
        }

        @Override
        public TestBackend resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return backend;
        }
    }

    /** Closed by JUnit when all tests are over. */
    private record Missing(List<TestBackend> backends) implements AutoCloseable {
        @Override
        public void close() {
            backends.stream()
                    .collect(
                            Collectors.groupingBy(
                                    backend -> backend.unavailabilityReason().orElseThrow(),
                                    Collectors.mapping(
                                            TestBackend::name, Collectors.joining(", "))))
                    .forEach(
                            (reason, names) ->
                                    System.out.println(
                                            "No suites ran on " + names + ": " + reason));
        }
    }
}
