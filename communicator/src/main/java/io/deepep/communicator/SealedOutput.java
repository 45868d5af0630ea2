package io.deepep.communicator;

import java.io.IOException;
import java.io.OutputStream;
import javax.crypto.SecretKey;

/** What a connection sends after the proof, as {@link Frames}. */
final class SealedOutput extends OutputStream {
    private static final byte[] NOTHING = new byte[0];

    private final OutputStream raw;
    private final Frames frames;
    private final byte[] frame =
            new byte[Frames.HEADER_BYTES + Frames.MAX_PLAIN_BYTES + Frames.TAG_BYTES];

    SealedOutput(OutputStream raw, SecretKey key) {
        this.raw = raw;
        frames = new Frames(key);
    }

    @Override
    public void write(int value) throws IOException {
        write(new byte[] {(byte) value}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] bytes, int offset, int length) throws IOException {
        for (int done = 0; done < length; done += Frames.MAX_PLAIN_BYTES) {
            int part = Math.min(length - done, Frames.MAX_PLAIN_BYTES);
            writeFrame(Frames.DATA, bytes, offset + done, part);
        }
    }

    /** Tells the other end of a departure. */
    synchronized void writeDeparture(byte[] departure) throws IOException {
        writeFrame(Frames.DEPARTURE, departure, 0, departure.length);
    }

    /** Tells the other end that the connection ends here. */
    synchronized void writeEnd() throws IOException {
        writeFrame(Frames.END, NOTHING, 0, 0);
    }

    private void writeFrame(byte kind, byte[] plain, int offset, int length) throws IOException {
        raw.write(frame, 0, frames.seal(kind, plain, offset, length, frame));
    }
}
