/** The normal (throughput) protocol. */
package io.deepep.normal;
