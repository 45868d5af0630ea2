/**
 * What observers of a buffer see of its calls: {@link io.deepep.Buffer.Builder#observer} adds a
 * {@link io.deepep.observe.BufferObserver}, such as meters.
 */
package io.deepep.observe;
