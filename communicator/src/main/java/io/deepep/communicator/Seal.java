package io.deepep.communicator;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.KDF;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.HKDFParameterSpec;

/**
 * Encrypts and authenticates frames with a key made from the shared secret: AES-256-GCM, a random
 * nonce in front.
 */
final class Seal {
    private static final int NONCE_BYTES = 12;
    private static final int TAG_BITS = 128;
    private static final byte[] PURPOSE =
            "deepep communicator 1".getBytes(StandardCharsets.US_ASCII);

    private final SecretKey key;
    private final SecureRandom random = new SecureRandom();

    Seal(String secret) {
        try {
            HKDFParameterSpec expand =
                    HKDFParameterSpec.ofExtract()
                            .addIKM(secret.getBytes(StandardCharsets.UTF_8))
                            .thenExpand(PURPOSE, 32);
            key = KDF.getInstance("HKDF-SHA256").deriveKey("AES", expand);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this Java runtime lacks HKDF-SHA256", missing);
        }
    }

    /**
     * Nonce, ciphertext and tag of {@code length} bytes of {@code plain}, behind {@code prefix}.
     */
    byte[] seal(byte prefix, byte[] plain, int offset, int length) {
        byte[] nonce = new byte[NONCE_BYTES];
        random.nextBytes(nonce);
        try {
            Cipher cipher = cipher(Cipher.ENCRYPT_MODE, nonce, 0);
            byte[] frame = new byte[1 + NONCE_BYTES + cipher.getOutputSize(length)];
            ByteBuffer.wrap(frame).put(prefix).put(nonce);
            cipher.doFinal(plain, offset, length, frame, 1 + NONCE_BYTES);
            return frame;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("AES-GCM failed", impossible);
        }
    }

    /**
     * What {@link #seal} was given, from the byte after the prefix on; null if not sealed with this
     * secret.
     */
    byte[] open(byte[] frame, int offset, int length) {
        if (length < NONCE_BYTES + TAG_BITS / 8) {
            return null;
        }
        try {
            return cipher(Cipher.DECRYPT_MODE, frame, offset)
                    .doFinal(frame, offset + NONCE_BYTES, length - NONCE_BYTES);
        } catch (AEADBadTagException stranger) {
            return null;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("AES-GCM failed", impossible);
        }
    }

    private Cipher cipher(int mode, byte[] nonce, int offset) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce, offset, NONCE_BYTES));
        return cipher;
    }
}
