/** The oracle and the conformance suites that each backend inherits. */
package io.deepep.testkit;
