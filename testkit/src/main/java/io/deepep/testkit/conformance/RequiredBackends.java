package io.deepep.testkit.conformance;

import static org.junit.jupiter.api.Assertions.fail;

import io.deepep.Device;
import io.deepep.testkit.TestBackends;
import java.util.Arrays;
import java.util.Locale;
import org.junit.jupiter.api.Assumptions;

/**
 * Reads {@code -Ddeepep.require=host,cuda}: tests of a backend named there fail where they would be
 * skipped.
 */
public final class RequiredBackends {
    /** The system property. */
    public static final String PROPERTY = TestBackends.REQUIRE;

    private RequiredBackends() {}

    /** Whether {@code backend} is named by the property. */
    public static boolean isRequired(Device.Kind backend) {
        String name = backend.name().toLowerCase(Locale.ROOT);
        return Arrays.stream(System.getProperty(PROPERTY, "").split(","))
                .map(part -> part.strip().toLowerCase(Locale.ROOT))
                .anyMatch(name::equals);
    }

    /**
     * Skips the calling test, or fails it where {@code backend} is required, unless it is {@code
     * usable}.
     */
    public static void assume(Device.Kind backend, boolean usable, String reason) {
        if (!usable && isRequired(backend)) {
            fail(PROPERTY + " names " + backend + ", which cannot be used here: " + reason);
        }
        Assumptions.assumeTrue(usable, reason);
    }
}
