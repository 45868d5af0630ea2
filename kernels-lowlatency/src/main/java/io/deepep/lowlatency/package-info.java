/** The low-latency protocol. */
package io.deepep.lowlatency;
