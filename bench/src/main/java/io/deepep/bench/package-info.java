/** The deepep command: test and benchmark harness. */
package io.deepep.bench;
