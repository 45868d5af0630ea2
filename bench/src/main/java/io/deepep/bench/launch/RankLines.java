package io.deepep.bench.launch;

import java.io.BufferedReader;
import java.io.IOException;

/**
 * The lines of a rank's output. One that does not end comes in parts, so that a rank that writes
 * gigabytes without a line break does not fill the launcher's memory.
 */
final class RankLines implements AutoCloseable {
    static final int LONGEST = 1 << 16;

    private final BufferedReader reader;
    private boolean skipLineFeed;

    RankLines(BufferedReader reader) {
        this.reader = reader;
    }

    /**
     * The next line without its end, or the next part of a long one; null after the last. A
     * carriage return ends a line at once: a progress bar may wait before it writes on.
     */
    String next() throws IOException {
        StringBuilder line = new StringBuilder();
        while (true) {
            int next = reader.read();
            if (next == '\n' && skipLineFeed) {
                skipLineFeed = false;
                continue;
            }
            skipLineFeed = next == '\r';
            if (next < 0) {
                return line.isEmpty() ? null : line.toString();
            }
            if (next == '\n' || next == '\r') {
                return line.toString();
            }
            line.append((char) next);
            if (line.length() >= LONGEST && !Character.isHighSurrogate((char) next)) {
                skipLineFeed = true; // the line may end right here
                return line.toString();
            }
        }
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }
}
