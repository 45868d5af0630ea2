package io.deepep.spi;

import io.deepep.error.DeepEpUnavailableException;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The implementations behind the API, each looked for until it is found and then kept: engines wrap
 * streams in every call.
 */
final class Providers {
    private static final Map<Class<?>, Object> FOUND = new ConcurrentHashMap<>();

    private Providers() {}

    /**
     * The provider of a kind.
     *
     * @param artifact the one to add if there is no provider
     * @throws DeepEpUnavailableException if there is none
     */
    static <P> P load(Class<P> kind, String artifact) {
        Object found = FOUND.get(kind);
        if (found == null) {
            found =
                    ServiceLoader.load(kind, kind.getClassLoader())
                            .findFirst()
                            .orElseThrow(
                                    () ->
                                            new DeepEpUnavailableException(
                                                    "no implementation of %s was found"
                                                            .formatted(kind.getName()),
                                                    "add the artifact io.deepep:"
                                                            + artifact
                                                            + " where deepep-api is loaded from; a shaded jar must"
                                                            + " keep META-INF/services, and jlink needs --add-modules"
                                                            + " io.deepep.library"));
            FOUND.put(kind, found);
        }
        return kind.cast(found);
    }
}
