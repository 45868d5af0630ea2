package io.deepep.testkit.nic;

import java.util.HexFormat;

/** What an entry of a send queue asks the network card to do at the peer. */
public sealed interface WorkRequest {
    /** Where at the peer. */
    long remoteAddress();

    /** The key that gives access to it. */
    int remoteKey();

    /**
     * Copies registered memory to the peer.
     *
     * @param numBytes 1 to 2^31 - 1
     */
    record Write(long remoteAddress, int remoteKey, long localAddress, int localKey, int numBytes)
            implements WorkRequest {}

    /**
     * Writes 1 to 12 bytes that lie in the entry itself.
     *
     * @param hex the bytes, two digits each
     */
    record InlineWrite(long remoteAddress, int remoteKey, String hex) implements WorkRequest {
        /** Bytes that an entry has room for. */
        public static final int MAX_BYTES = 12;

        /** Writes those bytes. */
        public static InlineWrite of(long remoteAddress, int remoteKey, byte... bytes) {
            return new InlineWrite(remoteAddress, remoteKey, HexFormat.of().formatHex(bytes));
        }

        byte[] bytes() {
            return HexFormat.of().parseHex(hex);
        }
    }

    /** Adds to the peer's u64 and brings back what it was. */
    record FetchAdd(long remoteAddress, int remoteKey, long value, long localAddress, int localKey)
            implements WorkRequest {}
}
