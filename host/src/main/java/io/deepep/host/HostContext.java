package io.deepep.host;

import io.deepep.EpTopology;

/**
 * What the host kernels of one rank and one mode work with.
 *
 * @param topology the rank's place
 * @param nvl memory of the ranks of this node, read and written directly; null if the mode uses
 *     none
 * @param rdma memory of all ranks, only ever written into a peer (put, then signal) and read
 *     locally; null if the mode uses none
 * @param waiter how this rank waits
 */
public record HostContext(EpTopology topology, HostHeap nvl, HostHeap rdma, HostWait waiter) {}
