/** Conformance of buffers in which new ranks take the places of dead ones. */
package io.deepep.testkit.conformance.replacement;
