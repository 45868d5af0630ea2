package io.deepep.testkit.conformance;

import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.params.provider.AnnotationBasedArgumentsProvider;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.support.ParameterDeclarations;
import org.junit.platform.commons.support.ReflectionSupport;

/** Reads the groups of {@link Cases}, or asks their factories. */
final class GroupArguments extends AnnotationBasedArgumentsProvider<Cases> {
    @Override
    protected Stream<Arguments> provideArguments(
            ParameterDeclarations parameters, ExtensionContext context, Cases cases) {
        if (cases.ofThreads() && !Ranks.areThreads()) {
            return Stream.empty();
        }
        TestBackend backend = OnEachBackend.backendOf(context);
        Stream<Arguments> listed =
                Arrays.stream(cases.value())
                        .map(line -> line.split(",\\s*"))
                        .filter(values -> Ranks.fit(backend, topology(values)))
                        .map(values -> arguments(context.getRequiredTestMethod(), backend, values));
        Stream<Arguments> made =
                Arrays.stream(cases.from()).flatMap(factory -> made(factory, backend, context));
        return Stream.concat(listed, made);
    }

    private static Stream<Arguments> made(
            String factory, TestBackend backend, ExtensionContext context) {
        Class<?> suite = context.getRequiredTestClass();
        Class<?> first = context.getRequiredTestMethod().getParameterTypes()[0];
        Method found =
                ReflectionSupport.findMethod(suite, factory, TestBackend.class)
                        .or(() -> ReflectionSupport.findMethod(first, factory, TestBackend.class))
                        .orElseThrow(
                                () ->
                                        new IllegalArgumentException(
                                                "neither %s nor %s has a static %s(TestBackend)"
                                                        .formatted(suite, first, factory)));
        Object made = ReflectionSupport.invokeMethod(found, null, backend);
        return (made instanceof List<?> list ? list.stream() : (Stream<?>) made)
                .map(each -> each instanceof Arguments all ? all : Arguments.of(each));
    }

    /** A case that each rank runs learns its group from its context. */
    private static Arguments arguments(Method method, TestBackend backend, String[] values) {
        Class<?>[] parameters = method.getParameterTypes();
        if (parameters.length == 0 || parameters[parameters.length - 1] != RankContext.class) {
            return Arguments.of((Object[]) values);
        }
        Object[] more = Arrays.copyOfRange(values, 2, values.length + 1, Object[].class);
        more[more.length - 1] = RankContext.of(backend, topology(values));
        return Arguments.of(more);
    }

    private static EpTopology topology(String[] values) {
        return Ranks.topology(Integer.parseInt(values[0]), Integer.parseInt(values[1]));
    }
}
