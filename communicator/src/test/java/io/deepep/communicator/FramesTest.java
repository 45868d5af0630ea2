package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

/** What somebody on the way can do to the frames of a connection. */
class FramesTest {
    private static final int NOT_THE_NEXT = -1;

    private final SecretKey key = new SecretKeySpec(new byte[32], "AES");
    private final Frames sender = new Frames(key);
    private final byte[] first = seal(1);
    private final byte[] second = seal(2);

    private byte[] seal(int word) {
        byte[] frame = new byte[Frames.HEADER_BYTES + 1 + Frames.TAG_BYTES];
        assertThat(sender.seal(Frames.DATA, new byte[] {(byte) word}, 0, 1, frame))
                .isEqualTo(frame.length);
        return frame;
    }

    /** The word in a frame, or {@link #NOT_THE_NEXT}. */
    private static int open(Frames receiver, byte[] frame) {
        byte[] plain = new byte[Frames.MAX_PLAIN_BYTES];
        int length = receiver.open(frame, frame.length - Frames.HEADER_BYTES, plain);
        return length == 1 ? plain[0] : length;
    }

    @Test
    void framesAreOpenedInTheirOrder() {
        Frames receiver = new Frames(key);
        assertThat(open(receiver, first)).isEqualTo(1);
        assertThat(open(receiver, second)).isEqualTo(2);
    }

    @Test
    void noneIsLeftOutOrRepeated() {
        assertThat(open(new Frames(key), second)).isEqualTo(NOT_THE_NEXT);
        Frames receiver = new Frames(key);
        assertThat(open(receiver, first)).isEqualTo(1);
        assertThat(open(receiver, first)).isEqualTo(NOT_THE_NEXT);
    }

    /** Nor in its header: stream bytes could be passed off as a departure. */
    @Test
    void noBitIsChanged() {
        for (int bit = 0; bit < 8 * first.length; bit++) {
            byte[] changed = first.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            assertThat(open(new Frames(key), changed)).as("bit %s", bit).isEqualTo(NOT_THE_NEXT);
        }
    }

    @Test
    void anotherKeyOpensNothing() {
        byte[] other = new byte[32];
        other[31] = 1;
        assertThat(open(new Frames(new SecretKeySpec(other, "AES")), first))
                .isEqualTo(NOT_THE_NEXT);
    }

    @Test
    void aLengthIsThatOfATagAtLeastAndOfTheLargestFrameAtMost() {
        assertThat(Frames.bodyBytes(first)).isEqualTo(1 + Frames.TAG_BYTES);
        int largest = Frames.MAX_PLAIN_BYTES + Frames.TAG_BYTES;
        for (int length : new int[] {Frames.TAG_BYTES, largest}) {
            assertThat(Frames.bodyBytes(withLength(length))).isEqualTo(length);
        }
        for (int length : new int[] {0, Frames.TAG_BYTES - 1, largest + 1, 0xFFFF}) {
            assertThat(Frames.bodyBytes(withLength(length))).as("%s", length).isEqualTo(-1);
        }
    }

    private byte[] withLength(int length) {
        byte[] header = Arrays.copyOf(first, Frames.HEADER_BYTES);
        header[2] = (byte) (length >> 8);
        header[3] = (byte) length;
        return header;
    }
}
