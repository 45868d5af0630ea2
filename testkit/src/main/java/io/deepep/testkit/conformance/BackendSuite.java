package io.deepep.testkit.conformance;

import io.deepep.testkit.TestBackend;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.ClassTemplate;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A class of tests that runs once for each backend that is here, which its constructor may take as
 * a {@link TestBackend}. Cases that do not apply to a backend are not in its list: see {@link
 * Cases}. A case whose last parameter is a {@link RankContext} is run by every rank of its {@link
 * RankGroup}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ClassTemplate
@ExtendWith(OnEachBackend.class)
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public @interface BackendSuite {
    /** The name of the only backend that it is about; empty if it is about all. */
    String only() default "";

    /** Whether it is about backends alone that have graphs. */
    boolean graphs() default false;
}
