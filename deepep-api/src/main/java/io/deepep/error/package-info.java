/** Exceptions for all failures other than misuse of the API, in one sealed hierarchy. */
package io.deepep.error;
