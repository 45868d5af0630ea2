/**
 * What backends ask of Linux: descriptors that processes hand one another, memory that they share,
 * how much memory there is. Not for engines.
 */
package io.deepep.spi.posix;
