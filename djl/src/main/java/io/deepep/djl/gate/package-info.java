/** Gates, which choose the experts of each token. */
package io.deepep.djl.gate;
