/**
 * The {@link io.deepep.Buffer} itself: sizes memory, meets the other ranks, picks the backend,
 * orders operations on streams.
 */
package io.deepep.buffer;
