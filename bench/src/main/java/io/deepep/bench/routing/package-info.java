/** Recorded routings: readers of the file formats in which frameworks store tensors. */
package io.deepep.bench.routing;
