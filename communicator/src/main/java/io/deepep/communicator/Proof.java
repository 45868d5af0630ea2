package io.deepep.communicator;

import io.deepep.error.DeepEpUnavailableException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.KDF;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.HKDFParameterSpec;
import org.jgroups.util.UUID;

/**
 * How the two ends of a connection prove to each other that they know the secret, before anything
 * else is read. All messages have a fixed length:
 *
 * <pre>
 *  client                 server
 *  hello (56)        --&gt;
 *                    &lt;--  hello (56)
 *  proof (32)        --&gt;
 *                    &lt;--  proof (32), or 32 zeros: another secret
 *
 *  hello:  magic and version (8) | address of the rank (16) | nonce (32)
 *  proof:  HMAC-SHA256 of both hellos, with a key for each role
 * </pre>
 *
 * All keys come from the secret and both hellos (HKDF), so that each connection has its own, and
 * one for each direction.
 */
final class Proof {
    static final int MAGIC_BYTES = 8;
    static final int HELLO_BYTES = 56;
    static final int PROOF_BYTES = 32;

    /** "DEEPEP" and the version of what is said on a connection, 2. */
    private static final long MAGIC = 0x4445_4550_4550_0002L;

    private static final int VERSION_BITS = 16;
    private static final int NONCE_BYTES = 32;
    private static final byte[] REFUSAL = new byte[PROOF_BYTES];
    private static final SecureRandom RANDOM = new SecureRandom();

    private final boolean client;
    private final byte[] secret;
    private final byte[] hello;
    private byte[] bothHellos;
    private UUID peer;

    Proof(boolean client, String secret, UUID address) {
        this.client = client;
        this.secret = secret.getBytes(StandardCharsets.UTF_8);
        byte[] nonce = new byte[NONCE_BYTES];
        RANDOM.nextBytes(nonce);
        hello =
                ByteBuffer.allocate(HELLO_BYTES)
                        .putLong(MAGIC)
                        .putLong(address.getMostSignificantBits())
                        .putLong(address.getLeastSignificantBits())
                        .put(nonce)
                        .array();
    }

    /**
     * Does once all that a connection needs of Java.
     *
     * @throws DeepEpUnavailableException if Java lacks any of it
     */
    static void requireAlgorithms() {
        Proof proof = new Proof(true, "", RankAddress.create(0, 1));
        proof.greet(proof.hello);
        proof.proof();
        new Frames(proof.sendKey());
    }

    static DeepEpUnavailableException lacks(String algorithm, GeneralSecurityException missing) {
        return new DeepEpUnavailableException(
                "this Java runtime lacks " + algorithm,
                "enable the provider SunJCE in its java.security, or use another JDK",
                missing);
    }

    byte[] hello() {
        return hello;
    }

    /** Whether a rank of any version would begin so. */
    static boolean isMagic(byte[] first) {
        return ByteBuffer.wrap(first).getLong() >>> VERSION_BITS == MAGIC >>> VERSION_BITS;
    }

    /** Takes the other end's hello; false if it is of another version. */
    boolean greet(byte[] itsHello) {
        ByteBuffer fields = ByteBuffer.wrap(itsHello);
        boolean sameVersion = fields.getLong() == MAGIC;
        peer = new UUID(fields.getLong(), fields.getLong());
        bothHellos =
                ByteBuffer.allocate(2 * HELLO_BYTES)
                        .put(client ? hello : itsHello)
                        .put(client ? itsHello : hello)
                        .array();
        return sameVersion;
    }

    /** The address that the other end claims; true once it has proven the secret. */
    UUID peer() {
        return peer;
    }

    /** This end's proof. */
    byte[] proof() {
        return proofOf(client);
    }

    boolean accepts(byte[] itsProof) {
        return MessageDigest.isEqual(proofOf(!client), itsProof);
    }

    static byte[] refusal() {
        return REFUSAL.clone();
    }

    static boolean isRefusal(byte[] itsProof) {
        return MessageDigest.isEqual(REFUSAL, itsProof);
    }

    private byte[] proofOf(boolean ofClient) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(key("HmacSHA256", "proof", ofClient));
            return mac.doFinal(bothHellos);
        } catch (GeneralSecurityException missing) {
            throw lacks("HmacSHA256", missing);
        }
    }

    /** Of what this end sends. */
    SecretKey sendKey() {
        return key("AES", "frames", client);
    }

    /** Of what this end receives. */
    SecretKey receiveKey() {
        return key("AES", "frames", !client);
    }

    private SecretKey key(String algorithm, String use, boolean ofClient) {
        String purpose = "deepep communicator " + use + (ofClient ? " of client" : " of server");
        try {
            HKDFParameterSpec spec =
                    HKDFParameterSpec.ofExtract()
                            .addIKM(secret)
                            .addSalt(bothHellos)
                            .thenExpand(purpose.getBytes(StandardCharsets.US_ASCII), 32);
            return KDF.getInstance("HKDF-SHA256").deriveKey(algorithm, spec);
        } catch (GeneralSecurityException missing) {
            throw lacks("HKDF-SHA256", missing);
        }
    }
}
