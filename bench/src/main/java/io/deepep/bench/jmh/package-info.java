/** JMH benchmarks of the host backend: {@code deepep jmh NAME}. */
package io.deepep.bench.jmh;
