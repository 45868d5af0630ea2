/** Times, bytes and bandwidths of operations, and how they are reported. */
package io.deepep.bench.measure;
