package io.deepep.spi;

import io.deepep.error.DeepEpUnavailableException;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The implementations behind the API, each looked for until it is found and then kept: engines wrap
 * streams in every call.
 */
final class Providers {
    private static final Map<Class<?>, Object> FOUND = new ConcurrentHashMap<>();

    /** For {@code load}: of what the artifact {@code deepep} brings. */
    static final String JLINK_LIBRARY = "jlink needs --add-modules io.deepep.library";

    private static final String SHADED =
            "a shaded jar must keep META-INF/services, and if it relocates packages, shade needs its"
                    + " ServicesResourceTransformer";

    private Providers() {}

    /**
     * The provider of a kind.
     *
     * @param artifact the one to add if there is no provider
     * @param jlink how to get it into a Java runtime of jlink
     * @throws DeepEpUnavailableException if there is none, or it cannot be used
     */
    static <P> P load(Class<P> kind, String artifact, String jlink) {
        Object found = FOUND.get(kind);
        if (found == null) {
            try {
                found =
                        ServiceLoader.load(kind, kind.getClassLoader())
                                .findFirst()
                                .orElseThrow(() -> missing(kind, artifact, jlink));
            } catch (ServiceConfigurationError unusable) {
                throw new DeepEpUnavailableException(
                        "an implementation cannot be used: " + unusable.getMessage(),
                        "have one class loader load all artifacts of io.deepep, whole and in one version",
                        unusable);
            }
            FOUND.put(kind, found);
        }
        return kind.cast(found);
    }

    private static DeepEpUnavailableException missing(
            Class<?> kind, String artifact, String jlink) {
        return new DeepEpUnavailableException(
                "no implementation of %s was found".formatted(kind.getName()),
                "add the artifact io.deepep:%s where deepep-api is loaded from; %s"
                        .formatted(artifact, kind.getModule().isNamed() ? jlink : SHADED));
    }
}
