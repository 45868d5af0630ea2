/** Runs the exchange of a layer: dispatch, the experts of this rank, combine. */
package io.deepep.djl.exchange;
