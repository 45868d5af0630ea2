package io.deepep.bench.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Reader;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RankLinesTest {
    private static final String LONGEST = "x".repeat(RankLines.LONGEST);

    private static List<String> lines(String text) throws IOException {
        List<String> all = new ArrayList<>();
        try (RankLines lines = new RankLines(new BufferedReader(new StringReader(text)))) {
            for (String line = lines.next(); line != null; line = lines.next()) {
                all.add(line);
            }
        }
        return all;
    }

    @Test
    void linesEndAsJavaReadsThem() throws IOException {
        for (String text :
                List.of("", "a", "a\n", "a\r\nb", "\n\n", "\r\r\na", "a\n\rb\r", "\r\n\n")) {
            assertThat(lines(text)).isEqualTo(text.lines().toList());
        }
    }

    @Test
    void longLinesComeInParts() throws IOException {
        assertThat(lines(LONGEST + "\n\nb")).containsExactly(LONGEST, "", "b");
        assertThat(lines(LONGEST + LONGEST + "a\nb")).containsExactly(LONGEST, LONGEST, "a", "b");
    }

    /** Half of a character cannot be written. */
    @Test
    void partsEndBetweenCharacters() throws IOException {
        String smile = "\uD83D\uDE00";
        String first = LONGEST.substring(1) + smile;
        assertThat(lines(first + smile)).containsExactly(first, smile);
    }

    @Test
    void aProgressBarShowsBeforeItGoesOn() throws IOException {
        Reader stopped =
                new Reader() {
                    private boolean read;

                    @Override
                    public int read(char[] buffer, int offset, int length) {
                        assertThat(read).as("whether it was asked for more").isFalse();
                        read = true;
                        buffer[offset] = '5';
                        buffer[offset + 1] = '\r';
                        return 2;
                    }

                    @Override
                    public void close() {}
                };
        try (RankLines lines = new RankLines(new BufferedReader(stopped))) {
            assertThat(lines.next()).isEqualTo("5");
        }
    }
}
