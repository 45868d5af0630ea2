/** Requests with seeded damage. */
package io.deepep.testkit.conformance.mutation;
