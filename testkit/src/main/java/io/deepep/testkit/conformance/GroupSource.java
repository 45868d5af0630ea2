package io.deepep.testkit.conformance;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.provider.ArgumentsSource;

/**
 * Arguments of {@link Cases}, each {@code "nodes, ranksPerNode"} and, after these, what else the
 * case takes: those whose group the suite's backend has. A method that is about one group, or that
 * each rank runs with its {@link RankContext}, does not take the two numbers.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ArgumentsSource(GroupArguments.class)
public @interface GroupSource {
    /** The arguments of the cases, separated by commas. */
    String[] value();

    /** Whether ranks leave the group for good, as none can that others need in later cases. */
    boolean ofThreads() default false;
}
