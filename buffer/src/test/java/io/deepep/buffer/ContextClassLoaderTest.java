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
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A plugin of an engine whose loader has the library: once the plugin is gone, the library holds
 * nothing of it.
 */
@Timeout(60)
class ContextClassLoaderTest {
    /** A process of its own, as the first caller is the one that might be kept. */
    static final class FirstCaller {
        private FirstCaller() {}

        public static void main(String[] args) throws InterruptedException, IOException {
            WeakReference<ClassLoader> plugin = usedByAPlugin();
            for (int i = 0; i < 100 && plugin.get() != null; i++) {
                System.gc();
                Thread.sleep(10);
            }
            System.out.print(plugin.get() == null ? "gone" : "kept");
        }

        private static WeakReference<ClassLoader> usedByAPlugin()
                throws InterruptedException, IOException {
            ClassLoader before = Thread.currentThread().getContextClassLoader();
            try (URLClassLoader plugin = new URLClassLoader(new URL[0]);
                    InProcessGroup group = InProcessGroup.of(2)) {
                Thread.currentThread().setContextClassLoader(plugin);
                group.run(FirstCaller::exchange);
                return new WeakReference<>(plugin);
            } finally {
                Thread.currentThread().setContextClassLoader(before);
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

    @Test
    void ofTheFirstCallerIsNotKept() throws IOException, InterruptedException {
        ProcessBuilder program = Programs.java(FirstCaller.class, Programs.SHORT_LIVED);
        assertThat(Programs.run(program).requireSuccess()).isEqualTo("gone");
    }
}
