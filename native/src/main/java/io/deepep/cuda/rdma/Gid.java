package io.deepep.cuda.rdma;

import java.nio.ByteBuffer;

/**
 * An address in the table of a port.
 *
 * @param idx its place in the table
 * @param high first 8 bytes, as a number
 * @param low last 8 bytes
 */
public record Gid(int idx, long high, long low) {
    private static final long LINK_LOCAL = 0xfe80_0000_0000_0000L;
    private static final long IPV4_MAPPED = 0xffffL;

    static Gid of(int idx, byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Gid(idx, buffer.getLong(), buffer.getLong());
    }

    /** Whether its place in the table holds no address. */
    public boolean isEmpty() {
        return high == 0 && low == 0;
    }

    /** Whether it is an IPv4 address, which packets then have. */
    boolean isIpv4() {
        return high == 0 && low >>> Integer.SIZE == IPV4_MAPPED;
    }

    /** Whether it is valid within one network only. */
    boolean isLinkLocal() {
        return high == LINK_LOCAL;
    }

    @Override
    public String toString() {
        return "%016x%016x".formatted(high, low).replaceAll("(.{4})(?!$)", "$1:");
    }
}
