package io.deepep.testkit.conformance;

import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.params.provider.AnnotationBasedArgumentsProvider;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.support.ParameterDeclarations;

/** Reads {@link GroupSource}. */
final class GroupArguments extends AnnotationBasedArgumentsProvider<GroupSource> {
    @Override
    protected Stream<Arguments> provideArguments(
            ParameterDeclarations parameters, ExtensionContext context, GroupSource source) {
        TestBackend backend = OnEachBackend.backendOf(context);
        return Arrays.stream(source.value())
                .map(line -> line.split(",\\s*"))
                .filter(values -> Ranks.fit(backend, topology(values)))
                .map(Arguments::of);
    }

    private static EpTopology topology(String[] values) {
        return Ranks.topology(Integer.parseInt(values[0]), Integer.parseInt(values[1]));
    }
}
