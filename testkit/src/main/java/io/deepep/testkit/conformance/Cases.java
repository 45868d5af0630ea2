package io.deepep.testkit.conformance;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.params.ParameterizedTest;

/**
 * A parameterized test of a {@link BackendSuite} whose source gives only arguments that apply to
 * the suite's backend, so perhaps none: {@link GroupSource}, or a factory of arguments with a
 * {@link io.deepep.testkit.TestBackend} as its parameter.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@ParameterizedTest(allowZeroInvocations = true)
public @interface Cases {}
