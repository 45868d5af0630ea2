/**
 * Conformance suites of normal mode, and of what can be done wrong in it or in opening a buffer.
 */
package io.deepep.testkit.conformance.normal;
