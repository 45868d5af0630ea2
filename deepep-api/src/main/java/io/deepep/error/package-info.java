/**
 * Exceptions for all failures other than misuse of the API, in one sealed hierarchy; and the one
 * for low-latency calls out of order.
 */
package io.deepep.error;
