package io.deepep.testkit.conformance;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ArgumentsSource;

/**
 * A parameterized test of a {@link BackendSuite}, with those arguments alone that apply to the
 * suite's backend, so perhaps none: listed here, or made by a factory.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ParameterizedTest(allowZeroInvocations = true)
@ArgumentsSource(GroupArguments.class)
public @interface Cases {
    /**
     * Groups, each {@code "nodes, ranksPerNode"} and, after these, what else the case takes. A
     * method that is about one group, or that each rank runs with its {@link RankContext}, does not
     * take the two numbers.
     */
    String[] value() default {};

    /**
     * Names of factories: static methods of the suite, or of the type of the case's first argument,
     * which give a stream or list of arguments for a {@link io.deepep.testkit.TestBackend}.
     */
    String[] from() default {};

    /** Whether ranks leave the group for good, as none can that others need in later cases. */
    boolean ofThreads() default false;
}
