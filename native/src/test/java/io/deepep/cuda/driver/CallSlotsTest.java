package io.deepep.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;

class CallSlotsTest {
    /** A server unloads a plugin that brought the library, and its threads go on. */
    @Test
    void aThreadThatGoesOnDoesNotKeepTheLibrary()
            throws IOException, ReflectiveOperationException, InterruptedException {
        WeakReference<ClassLoader> library = calledFromAnother();
        for (int i = 0; i < 100 && library.get() != null; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(library.get()).isNull();
    }

    private static WeakReference<ClassLoader> calledFromAnother()
            throws IOException, ReflectiveOperationException {
        URL classes = CallSlots.class.getProtectionDomain().getCodeSource().getLocation();
        try (URLClassLoader library =
                new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader())) {
            Class<?> slots = library.loadClass(CallSlots.class.getName());
            assertThat(slots.getMethod("first").invoke(null)).isNotNull();
            return new WeakReference<>(library);
        }
    }
}
