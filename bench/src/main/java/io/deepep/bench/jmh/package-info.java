/** JMH benchmarks: {@code deepep jmh} runs all, {@code deepep jmh NAME} some. */
package io.deepep.bench.jmh;
