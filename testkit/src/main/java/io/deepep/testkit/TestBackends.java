package io.deepep.testkit;

import java.util.Arrays;
import java.util.List;
import java.util.ServiceLoader;
import java.util.function.Predicate;

/**
 * All backends that tests know, of which a machine may have only some. A module that runs the
 * conformance suites provides them as a service.
 *
 * <p>{@code -Ddeepep.require=host,cuda} names backends without which the suites fail. {@code
 * -Ddeepep.backends=cuda} runs the suites on these alone, and requires them too.
 */
public interface TestBackends {
    /** The system property with the names of backends that must be there. */
    String REQUIRE = "deepep.require";

    /** The system property with the names of the backends to use; all if it is not set. */
    String SELECT = "deepep.backends";

    /** Every backend, usable here or not. */
    List<TestBackend> all();

    /** What the module's tests provide. */
    static TestBackends load() {
        return ServiceLoader.load(TestBackends.class)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no TestBackends on the class path"));
    }

    /** The backend of that name. */
    default TestBackend named(String name) {
        return all().stream()
                .filter(backend -> backend.name().equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "no backend is named " + name + "; there are " + all()));
    }

    /**
     * The backends to use that this machine has.
     *
     * @throws IllegalStateException if it lacks one that is required
     */
    default List<TestBackend> usable() {
        for (String property : List.of(REQUIRE, SELECT)) {
            for (String name : names(property)) {
                named(name)
                        .unavailabilityReason()
                        .ifPresent(
                                reason -> {
                                    throw new IllegalStateException(
                                            "%s names %s, which cannot be used here: %s"
                                                    .formatted(property, name, reason));
                                });
            }
        }
        return present();
    }

    /** The same, whether others are required or not. */
    default List<TestBackend> present() {
        return selected(backend -> backend.unavailabilityReason().isEmpty());
    }

    /** The backends to use that this machine lacks. */
    default List<TestBackend> missing() {
        return selected(backend -> backend.unavailabilityReason().isPresent());
    }

    private List<TestBackend> selected(Predicate<TestBackend> predicate) {
        List<String> names = names(SELECT);
        return all().stream()
                .filter(backend -> names.isEmpty() || names.contains(backend.name()))
                .filter(predicate)
                .toList();
    }

    /** The names that a system property lists. */
    static List<String> names(String property) {
        return Arrays.stream(System.getProperty(property, "").split(","))
                .map(String::strip)
                .filter(name -> !name.isEmpty())
                .toList();
    }
}
