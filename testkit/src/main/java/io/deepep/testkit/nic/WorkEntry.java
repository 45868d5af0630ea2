package io.deepep.testkit.nic;

import io.deepep.testkit.nic.WorkRequest.FetchAdd;
import io.deepep.testkit.nic.WorkRequest.InlineWrite;
import io.deepep.testkit.nic.WorkRequest.Write;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * An entry of a send queue, and its bits. Written from the format's description alone, so that it
 * can be compared with what device code writes.
 *
 * <pre>
 *        0                 1                 2                 3
 *        0 1 2 3 4 5 6 7   8 9 0 1 2 3 4 5   6 7 8 9 0 1 2 3   4 5 6 7 8 9 0 1
 *       +-----------------+-----------------------------------+-----------------+
 *    0  |  modifier = 0   |               index               |     opcode      |  control
 *    4  |                    queue                            | size / 16 bytes |
 *    8  |  signature = 0  |             reserved              |      flags      |  8: wants a completion
 *   12  |                            immediate = 0                              |
 *       +-----------------------------------------------------------------------+
 *   16  |                            remote address                             |  address
 *   20  |                                                                       |
 *   24  |                            remote key                                 |
 *   28  |                            reserved                                   |
 *       +-----------------------------------------------------------------------+
 *   32  | 0 |                        bytes                                      |  write: data
 *   36  |                            local key                                  |
 *   40  |                            local address                              |
 *   44  |                                                                       |
 *       +-----------------------------------------------------------------------+
 *   32  | 1 |                        bytes                                      |  or inline data
 *   36  |                            up to 12 bytes, then zeros                 |
 *       +-----------------------------------------------------------------------+
 *   32  |                            what to add                                |  or an atomic,
 *   40  |                            0                                          |  then data at 48
 *       +-----------------------------------------------------------------------+
 * </pre>
 *
 * All numbers are big-endian.
 *
 * @param index of the entry in its queue; only its low 16 bits are written
 * @param queue number of the queue pair, 24 bits
 * @param wantsCompletion whether its completion is reported
 * @param request what to do
 */
public record WorkEntry(long index, int queue, boolean wantsCompletion, WorkRequest request) {
    /** Bytes from entry to entry. */
    public static final int BYTES = 64;

    static final int RDMA_WRITE = 0x08;
    static final int ATOMIC_FETCH_ADD = 0x12;
    private static final int WANTS_COMPLETION = 8;
    private static final int INLINE = 1 << 31;
    private static final int SEGMENT_BYTES = 16;

    /** Bytes that the entry has; what follows up to {@link #BYTES} does not matter. */
    public int numBytes() {
        return SEGMENT_BYTES * (request instanceof FetchAdd ? 4 : 3);
    }

    int opcode() {
        return request instanceof FetchAdd ? ATOMIC_FETCH_ADD : RDMA_WRITE;
    }

    /** Its bits, {@link #numBytes} of them. */
    public byte[] encode() {
        ByteBuffer out = ByteBuffer.allocate(numBytes());
        out.put((byte) 0).putShort((short) index).put((byte) opcode());
        out.put((byte) (queue >> 16)).putShort((short) queue).put((byte) (numBytes() / 16));
        out.putInt(wantsCompletion ? WANTS_COMPLETION : 0).putInt(0);
        out.putLong(request.remoteAddress()).putInt(request.remoteKey()).putInt(0);
        switch (request) {
            case Write write ->
                    putData(out, write.numBytes(), write.localKey(), write.localAddress());
            case InlineWrite write -> {
                byte[] bytes = write.bytes();
                out.putInt(INLINE | bytes.length).put(bytes);
            }
            case FetchAdd add -> {
                out.putLong(add.value()).putLong(0);
                putData(out, Long.BYTES, add.localKey(), add.localAddress());
            }
        }
        return out.array();
    }

    private static void putData(ByteBuffer out, int numBytes, int key, long address) {
        out.putInt(numBytes).putInt(key).putLong(address);
    }

    /**
     * Reads an entry.
     *
     * @param block 64 bytes
     * @param index at which the queue has it
     * @throws NicMisuseException if a bit of it is not as the format has it
     */
    public static WorkEntry decode(byte[] block, long index) {
        ByteBuffer in = ByteBuffer.wrap(block);
        int queue = in.getInt(4) >>> 8;
        boolean wantsCompletion = in.getInt(8) == WANTS_COMPLETION;
        WorkEntry entry = new WorkEntry(index, queue, wantsCompletion, request(block));
        byte[] bits = entry.encode();
        int wrong = Arrays.mismatch(block, 0, bits.length, bits, 0, bits.length);
        if (wrong >= 0) {
            throw new NicMisuseException(
                    "byte %d of entry %d is 0x%02x but should be 0x%02x: %s"
                            .formatted(wrong, index, block[wrong], bits[wrong], hex(block)));
        }
        return entry;
    }

    private static WorkRequest request(byte[] block) {
        ByteBuffer in = ByteBuffer.wrap(block);
        long remoteAddress = in.getLong(16);
        int remoteKey = in.getInt(24);
        int opcode = in.get(3);
        int size = in.getInt(32);
        if (opcode == ATOMIC_FETCH_ADD) {
            return new FetchAdd(
                    remoteAddress, remoteKey, in.getLong(32), in.getLong(56), in.getInt(52));
        }
        if (opcode != RDMA_WRITE) {
            throw new NicMisuseException(
                    "opcode 0x%02x is unknown: %s".formatted(opcode, hex(block)));
        }
        if ((size & INLINE) == 0) {
            return new Write(remoteAddress, remoteKey, in.getLong(40), in.getInt(36), size);
        }
        int numBytes = size & ~INLINE;
        if (numBytes < 1 || numBytes > InlineWrite.MAX_BYTES) {
            throw new NicMisuseException(
                    "%d inline bytes, more than %d or none: %s"
                            .formatted(numBytes, InlineWrite.MAX_BYTES, hex(block)));
        }
        byte[] bytes = Arrays.copyOfRange(block, 36, 36 + numBytes);
        return InlineWrite.of(remoteAddress, remoteKey, bytes);
    }

    private static String hex(byte[] block) {
        return HexFormat.ofDelimiter(" ").formatHex(block);
    }
}
