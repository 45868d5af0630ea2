/** Everything that can go wrong beyond misuse of the API, as one sealed hierarchy. */
package io.deepep.error;
