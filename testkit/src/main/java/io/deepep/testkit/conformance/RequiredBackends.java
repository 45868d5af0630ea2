package io.deepep.testkit.conformance;

import static org.junit.jupiter.api.Assertions.fail;

import io.deepep.testkit.TestBackends;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;

/** Where {@code -Ddeepep.require} names a backend, tests of it fail that would be skipped. */
public final class RequiredBackends {
    private RequiredBackends() {}

    /**
     * Skips the calling test where kernels cannot run, or fails it where they must.
     *
     * @param unavailable why they cannot
     */
    public static void assumeCuda(Optional<String> unavailable) {
        if (unavailable.isPresent() && TestBackends.names(TestBackends.REQUIRE).contains("cuda")) {
            fail(
                    "%s names cuda, which cannot be used here: %s"
                            .formatted(TestBackends.REQUIRE, unavailable.get()));
        }
        Assumptions.assumeTrue(unavailable.isEmpty(), () -> unavailable.orElse(""));
    }
}
