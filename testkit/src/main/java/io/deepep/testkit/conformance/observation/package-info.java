/** What observers learn of calls. */
package io.deepep.testkit.conformance.observation;
