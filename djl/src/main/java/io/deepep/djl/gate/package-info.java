/** Gates, which select the experts of each token. */
package io.deepep.djl.gate;
