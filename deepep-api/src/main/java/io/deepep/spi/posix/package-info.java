/**
 * The functions of Linux that backends use: passing descriptors between processes, sharing memory,
 * finding how much memory is available. Not for engines.
 */
package io.deepep.spi.posix;
