/**
 * The functions of Linux that backends use: passing descriptors between processes, sharing memory,
 * finding how much memory is available, reading files of the kernel. Not for engines.
 */
package io.deepep.spi.posix;
