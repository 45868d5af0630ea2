package io.deepep.cuda.topology;

/**
 * A NIC, or a port of one, that serves no GPU.
 *
 * @param name RDMA device, with the port where it is about one
 * @param reason why
 */
public record ExcludedNic(String name, String reason) {}
