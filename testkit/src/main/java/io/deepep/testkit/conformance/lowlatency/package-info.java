/** Conformance suites of low-latency mode, and of what can be done wrong in it. */
package io.deepep.testkit.conformance.lowlatency;
