package io.deepep.communicator;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.SocketTimeoutException;
import java.util.Arrays;
import java.util.function.Consumer;
import javax.crypto.SecretKey;

/**
 * What a connection receives after the proof: hands on the stream's bytes, and tells apart an end
 * that was announced from one that was not. Read by one thread at a time.
 */
final class SealedInput extends InputStream {
    private final InputStream raw;
    private final Frames frames;
    private final Consumer<byte[]> departed;
    private final Runnable lost;
    private final byte[] frame =
            new byte[Frames.HEADER_BYTES + Frames.MAX_PLAIN_BYTES + Frames.TAG_BYTES];
    private final byte[] plain = new byte[Frames.MAX_PLAIN_BYTES];
    private int position;
    private int limit;
    private boolean used;
    private boolean ended;

    /**
     * Reads from {@code raw}.
     *
     * @param departed takes what the other end says of a departure
     * @param lost runs if the connection ends, and the other end had not said that it would; not if
     *     the connection was never used, as its other end may have given it up before it knew that
     *     it was let in
     */
    SealedInput(InputStream raw, SecretKey key, Consumer<byte[]> departed, Runnable lost) {
        this.raw = raw;
        this.frames = new Frames(key);
        this.departed = departed;
        this.lost = lost;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
        if (length == 0) {
            return 0;
        }
        while (position == limit) {
            if (ended) {
                return -1;
            }
            next();
        }
        int part = Math.min(length, limit - position);
        System.arraycopy(plain, position, bytes, offset, part);
        position += part;
        return part;
    }

    @Override
    public int available() {
        return limit - position;
    }

    private void next() throws IOException {
        try {
            readFrame();
        } catch (SocketTimeoutException tooLate) {
            ended = true;
            throw tooLate;
        } catch (IOException broken) {
            ended = true;
            if (used) {
                lost.run();
            }
            throw broken;
        }
    }

    private void readFrame() throws IOException {
        readFully(0, Frames.HEADER_BYTES);
        int body = Frames.bodyBytes(frame);
        if (body >= 0) {
            readFully(Frames.HEADER_BYTES, body);
        }
        int length = body < 0 ? -1 : frames.open(frame, body, plain);
        if (length < 0) {
            throw new IOException("a frame that the other end did not send");
        }
        used = true;
        switch (frame[0]) {
            case Frames.DATA -> {
                position = 0;
                limit = length;
            }
            case Frames.DEPARTURE -> departed.accept(Arrays.copyOf(plain, length));
            case Frames.END -> ended = true;
            default -> throw new IOException("frame of unknown kind " + frame[0]);
        }
    }

    private void readFully(int offset, int length) throws IOException {
        if (raw.readNBytes(frame, offset, length) < length) {
            throw new EOFException("the connection ended");
        }
    }
}
