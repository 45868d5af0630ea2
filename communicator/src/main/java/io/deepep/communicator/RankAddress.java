package io.deepep.communicator;

import java.security.SecureRandom;
import org.jgroups.Address;
import org.jgroups.util.UUID;

/**
 * The address of a rank in the group: a UUID whose lowest bits are the rank and the size that its
 * process was given, so that every view says by itself which ranks are alive.
 *
 * <pre>
 *  127                      32       16       0
 *  +------------------------+--------+--------+
 *  |         random         |  size  |  rank  |
 *  +------------------------+--------+--------+
 * </pre>
 */
final class RankAddress {
    /** Ranks and sizes are 16 bits wide. */
    static final int MAX_SIZE = 0xFFFF;

    private static final SecureRandom RANDOM = new SecureRandom();

    private RankAddress() {}

    static UUID create(int rank, int size) {
        long low = (long) RANDOM.nextInt() << 32 | (long) size << 16 | rank;
        return new UUID(RANDOM.nextLong(), low);
    }

    static int rank(Address address) {
        return (int) ((UUID) address).getLeastSignificantBits() & 0xFFFF;
    }

    static int size(Address address) {
        return (int) ((UUID) address).getLeastSignificantBits() >>> 16;
    }
}
