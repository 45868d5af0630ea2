/**
 * The oracle: what every rank must receive and get back, computed the plain way from the global
 * routing. Shares no code with the kernels, and none of it needs a test framework: a difference is
 * an {@link io.deepep.testkit.oracle.OracleMismatch}.
 */
package io.deepep.testkit.oracle;
