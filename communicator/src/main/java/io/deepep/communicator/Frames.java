package io.deepep.communicator;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;

/**
 * One direction of a connection after the proof: frames of a limited length under AES-256-GCM,
 * whose nonces count them. A frame that is changed, left out, repeated or moved cannot be opened.
 *
 * <pre>
 *  kind (1) | 0 (1) | length (2) | encrypted bytes and tag (length)
 *  \------- authenticated -------/
 * </pre>
 */
final class Frames {
    static final int HEADER_BYTES = 4;
    static final int MAX_PLAIN_BYTES = 16 << 10;
    static final int TAG_BYTES = 16;

    /** Bytes of the stream. */
    static final byte DATA = 0;

    /** A {@link io.deepep.error.Departure} that the sender knows of, its own among them. */
    static final byte DEPARTURE = 1;

    /** The sender closes the connection; without it, a connection that ends was lost. */
    static final byte END = 2;

    private static final int NONCE_BYTES = 12;

    private final SecretKey key;
    private final Cipher cipher;
    private final byte[] nonce = new byte[NONCE_BYTES];
    private long number;

    Frames(SecretKey key) {
        this.key = key;
        try {
            cipher = Cipher.getInstance("AES/GCM/NoPadding");
        } catch (GeneralSecurityException missing) {
            throw Proof.lacks("AES-GCM", missing);
        }
    }

    /**
     * Writes a frame of {@code length} bytes of {@code plain} to the beginning of {@code frame};
     * returns how long it is.
     */
    int seal(byte kind, byte[] plain, int offset, int length, byte[] frame) {
        ByteBuffer.wrap(frame).put(kind).put((byte) 0).putShort((short) (length + TAG_BYTES));
        try {
            init(Cipher.ENCRYPT_MODE, frame);
            return HEADER_BYTES + cipher.doFinal(plain, offset, length, frame, HEADER_BYTES);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("AES-GCM failed", impossible);
        }
    }

    /** How many bytes follow this header, or -1 if it cannot be one. */
    static int bodyBytes(byte[] frame) {
        int length = ByteBuffer.wrap(frame).getShort(2) & 0xFFFF;
        return length < TAG_BYTES || length > MAX_PLAIN_BYTES + TAG_BYTES ? -1 : length;
    }

    /**
     * Opens {@code frame} into {@code plain}; returns how many bytes, or -1 if the frame is not the
     * next that the other end sealed.
     */
    int open(byte[] frame, int bodyBytes, byte[] plain) {
        try {
            init(Cipher.DECRYPT_MODE, frame);
            return cipher.doFinal(frame, HEADER_BYTES, bodyBytes, plain, 0);
        } catch (GeneralSecurityException forged) {
            return -1;
        }
    }

    private void init(int mode, byte[] header) throws GeneralSecurityException {
        ByteBuffer.wrap(nonce).putLong(NONCE_BYTES - Long.BYTES, number++);
        cipher.init(mode, key, new GCMParameterSpec(8 * TAG_BYTES, nonce));
        cipher.updateAAD(header, 0, HEADER_BYTES);
    }
}
