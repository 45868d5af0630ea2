package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class GraphTest {
    private final List<String> calls = new ArrayList<>();
    private final Graph graph = pretend(Graph.class, null);
    private final Stream stream = pretend(Stream.class, graph);

    private <T> T pretend(Class<T> type, Object result) {
        return type.cast(
                Proxy.newProxyInstance(
                        type.getClassLoader(),
                        new Class<?>[] {type},
                        (_, method, _) -> {
                            calls.add(method.getName());
                            return method.getReturnType() == void.class ? null : result;
                        }));
    }

    @Test
    void whatWorkPutsOnTheStreamIsCaptured() {
        assertThat(Graph.capture(stream, () -> calls.add("work"))).isSameAs(graph);
        assertThat(calls).containsExactly("beginCapture", "work", "endCapture");
    }

    static List<Throwable> failures() {
        return List.of(
                new IllegalStateException("no"), new AssertionError("no"), new IOException("no"));
    }

    /** Also with a checked exception, which Kotlin and Scala throw anywhere. */
    @ParameterizedTest
    @MethodSource("failures")
    void workThatFailsEndsTheCapture(Throwable failure) {
        assertThatThrownBy(() -> Graph.capture(stream, () -> sneak(failure))).isSameAs(failure);
        assertThat(calls).containsExactly("beginCapture", "endCapture", "close");
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneak(Throwable failure) throws E {
        throw (E) failure;
    }
}
