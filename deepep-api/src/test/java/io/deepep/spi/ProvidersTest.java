package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProvidersTest {
    /** As one of the engine's loader where a plugin has the API once more. */
    @Test
    void anImplementationOfAnotherApiIsToldWithTheCure(@TempDir Path folder)
            throws IOException, ReflectiveOperationException {
        Path services = Files.createDirectories(folder.resolve("META-INF/services"));
        Files.writeString(services.resolve(BufferProvider.class.getName()), Undo.class.getName());
        URL[] urls = {
            BufferProvider.class.getProtectionDomain().getCodeSource().getLocation(),
            folder.toUri().toURL()
        };
        try (URLClassLoader plugin =
                new URLClassLoader(urls, ClassLoader.getPlatformClassLoader())) {
            Method load = plugin.loadClass(BufferProvider.class.getName()).getMethod("load");
            assertThatThrownBy(() -> load.invoke(null))
                    .cause()
                    .hasMessageContaining(
                            "an implementation cannot be used: io.deepep.spi.BufferProvider: "
                                    + "io.deepep.spi.Undo not a subtype; have one class loader load ");
        }
    }
}
