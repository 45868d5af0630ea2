/**
 * Reports of the calls of a buffer to a {@link io.deepep.observe.BufferObserver}, which {@link
 * io.deepep.Buffer.Builder#observer} adds.
 */
package io.deepep.observe;
