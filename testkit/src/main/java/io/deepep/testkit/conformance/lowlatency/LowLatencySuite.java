package io.deepep.testkit.conformance.lowlatency;

import io.deepep.testkit.conformance.Cases;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.provider.MethodSource;

/** The {@link Cases} of suites of low-latency mode: of some {@link LowLatencyShape}s. */
interface LowLatencySuite {
    /** Of {@link LowLatencyShape#all}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.lowlatency.LowLatencyShape#all")
    @interface All {}

    /** Of {@link LowLatencyShape#few}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.lowlatency.LowLatencyShape#few")
    @interface Few {}
}
