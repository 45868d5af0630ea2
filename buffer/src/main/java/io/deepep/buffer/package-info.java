/**
 * The implementation of {@link io.deepep.Buffer}: sizes memory, meets the other ranks, chooses the
 * backend, and orders operations on streams.
 */
package io.deepep.buffer;
