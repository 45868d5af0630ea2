/** What Java and the reference in PyTorch, {@code python-parity}, know of each other. */
package io.deepep.buffer.parity;
