/** Everything that can go wrong apart from misuse of the API, as one sealed hierarchy. */
package io.deepep.error;
