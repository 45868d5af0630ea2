/** What observers are told of calls. */
package io.deepep.testkit.conformance.observation;
