/** Tests and measurements of normal mode. */
package io.deepep.bench.normal;
