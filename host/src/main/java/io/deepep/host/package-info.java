/** The CPU runtime: off-heap memory shared by rank threads, flags, streams and row arithmetic. */
package io.deepep.host;
