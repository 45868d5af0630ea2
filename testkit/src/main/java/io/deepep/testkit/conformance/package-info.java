/**
 * How conformance suites run on each backend: on which, in which groups of ranks, in which
 * processes. The suites are in the packages below.
 */
package io.deepep.testkit.conformance;
