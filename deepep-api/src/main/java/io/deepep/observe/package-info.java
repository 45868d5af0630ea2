/**
 * What observers of a buffer see of its calls: {@link io.deepep.Buffer.Builder#observer} adds a
 * {@link io.deepep.observe.BufferObserver}, as meters are.
 */
package io.deepep.observe;
