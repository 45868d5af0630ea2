package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.testkit.Programs;
import java.io.File;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A plugin of an engine, whose loader has the library or calls that of the engine: once the plugin
 * is gone, nothing keeps its loader.
 */
@Timeout(60)
class PluginClassLoaderTest {
    /** A process of its own, as the first caller is the one that might be kept. */
    static final class FirstCaller {
        private FirstCaller() {}

        public static void main(String[] args)
                throws InterruptedException, IOException, ReflectiveOperationException {
            WeakReference<ClassLoader> plugin =
                    args[0].equals("library") ? withTheLibrary() : withTheEnginesLibrary();
            for (int i = 0; i < 100 && plugin.get() != null; i++) {
                System.gc();
                Thread.sleep(10);
            }
            System.out.print(plugin.get() == null ? "gone" : "kept");
        }

        private static WeakReference<ClassLoader> withTheLibrary()
                throws IOException, ReflectiveOperationException {
            List<URL> classPath = new ArrayList<>();
            for (String entry :
                    System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
                classPath.add(Path.of(entry).toUri().toURL());
            }
            try (URLClassLoader plugin =
                    new URLClassLoader(
                            classPath.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
                plugin.loadClass(Exchange.class.getName())
                        .asSubclass(Runnable.class)
                        .getDeclaredConstructor()
                        .newInstance()
                        .run();
                return new WeakReference<>(plugin);
            }
        }

        private static WeakReference<ClassLoader> withTheEnginesLibrary() throws IOException {
            ClassLoader before = Thread.currentThread().getContextClassLoader();
            try (URLClassLoader plugin = new URLClassLoader(new URL[0])) {
                Thread.currentThread().setContextClassLoader(plugin);
                new Exchange().run();
                return new WeakReference<>(plugin);
            } finally {
                Thread.currentThread().setContextClassLoader(before);
            }
        }
    }

    /** What the plugin does. */
    public static final class Exchange implements Runnable {
        /** Called by name, in the plugin's loader. */
        public Exchange() {}

        @Override
        public void run() {
            try (InProcessGroup group = InProcessGroup.of(2)) {
                group.run(Exchange::exchange);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        private static void exchange(Communicator communicator) {
            NormalLimits limits = NormalLimits.of(4, 128, 1, 2);
            try (Arena arena = Arena.ofShared();
                    Buffer buffer = Buffer.builder(communicator).normal(limits).open()) {
                Tensor x = Tensor.allocate(arena, DType.BF16, 4, 128);
                Tensor idx = Tensor.allocate(arena, DType.I64, 4, 1);
                var received = buffer.dispatch(DispatchPlan.builder(x).topk(idx, null, 2).build());
                buffer.combine(CombinePlan.builder(received.recvX(), received.handle()).build());
            }
        }
    }

    /** Whether JDK caches hold it is not asked: they let go where memory is short. */
    private static String fate(String has) throws IOException, InterruptedException {
        List<String> options = new ArrayList<>(Programs.SHORT_LIVED);
        options.add("-XX:SoftRefLRUPolicyMSPerMB=0");
        return Programs.run(Programs.java(FirstCaller.class, options, has)).requireSuccess();
    }

    @Test
    void thatHasTheLibraryIsNotKept() throws IOException, InterruptedException {
        assertThat(fate("library")).isEqualTo("gone");
    }

    @Test
    void thatCallsTheLibraryFirstIsNotKept() throws IOException, InterruptedException {
        assertThat(fate("nothing")).isEqualTo("gone");
    }
}
