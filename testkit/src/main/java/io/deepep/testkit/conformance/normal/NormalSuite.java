package io.deepep.testkit.conformance.normal;

import io.deepep.testkit.conformance.Cases;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.provider.MethodSource;

/** The {@link Cases} of suites of normal mode: one for each of some {@link NormalShape}s. */
interface NormalSuite {
    /** Of {@link NormalShape#all}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.normal.NormalShape#all")
    @interface All {}

    /** Of {@link NormalShape#few}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.normal.NormalShape#few")
    @interface Few {}

    /** Of {@link NormalShape#fewBf16}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.normal.NormalShape#fewBf16")
    @interface FewBf16 {}

    /** Of {@link NormalShape#fewForFp8}. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @Cases
    @MethodSource("io.deepep.testkit.conformance.normal.NormalShape#fewForFp8")
    @interface FewForFp8 {}
}
