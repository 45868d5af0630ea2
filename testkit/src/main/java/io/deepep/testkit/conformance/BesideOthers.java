package io.deepep.testkit.conformance;

import io.deepep.Device;
import io.deepep.testkit.TestBackends;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.Set;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.api.parallel.ResourceAccessMode;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.ResourceLocksProvider;
import org.junit.jupiter.api.parallel.Resources;

/**
 * A class whose cases wait more than they compute: they run beside one another and beside other
 * classes. Not where there are GPUs: kernels that wait leave no room for those that they wait for.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Execution(ExecutionMode.CONCURRENT)
@ResourceLock(providers = BesideOthers.AloneOnGpus.class)
public @interface BesideOthers {
    /**
     * Keeps everything else away from the class if a backend on GPUs can be used. It does not ask
     * whether one is required: what it throws ends the run without its message.
     */
    final class AloneOnGpus implements ResourceLocksProvider {
        private final boolean alone =
                TestBackends.load().present().stream()
                        .anyMatch(backend -> backend.kind() == Device.Kind.CUDA);

        @Override
        public Set<Lock> provideForClass(Class<?> testClass) {
            return alone
                    ? Set.of(new Lock(Resources.GLOBAL, ResourceAccessMode.READ_WRITE))
                    : Set.of();
        }
    }
}
