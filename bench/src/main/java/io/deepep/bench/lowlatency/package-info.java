/** Tests and measurements of low-latency mode. */
package io.deepep.bench.lowlatency;
