/**
 * The conformance suites: JUnit classes that each backend inherits. A subclass only says which
 * {@link io.deepep.testkit.TestBackend} it is about.
 */
package io.deepep.testkit.conformance;
