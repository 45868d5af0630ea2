package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.Programs;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ProgressTest {
    private static final String ERASED = "\r\u001b[2K";

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private static void work(Console console) {
        try (Progress progress = Progress.of(console, "cases", 2)) {
            progress.at("first");
            console.line("%s is right", 1);
            progress.step();
            progress.at("second");
            console.complain("2 is wrong");
            progress.step();
        }
    }

    /** The terminal is where results go: standard error may be a file. */
    @Test
    void linesTakeThePlaceOfTheBar() {
        work(new Console(new PrintWriter(out), new PrintWriter(err), true));
        assertThat(out.toString())
                .contains("cases ", "2/2", ERASED + "1 is right" + System.lineSeparator() + ERASED)
                .endsWith(ERASED);
        assertThat(err.toString().lines()).containsExactly("deepep: 2 is wrong");
    }

    @Test
    void nobodyWatchesAFile() {
        work(new Console(new PrintWriter(out), new PrintWriter(err), false));
        assertThat(out.toString().lines()).containsExactly("1 is right");
    }

    static final class OnATerminal {
        private OnATerminal() {}

        public static void main(String[] args) {
            work(new Console(printer(System.out), printer(System.err), true));
        }

        private static PrintWriter printer(OutputStream stream) {
            return new PrintWriter(stream, true, StandardCharsets.UTF_8);
        }
    }

    /** JLine, which would open it, takes Ctrl-C from the command. */
    @Test
    void theTerminalIsNotOpened(@TempDir Path folder) throws Exception {
        Path loaded = folder.resolve("classes");
        List<String> options = new ArrayList<>(Programs.SHORT_LIVED);
        options.add("-Xlog:class+load:file=" + loaded);
        Programs.run(Programs.java(OnATerminal.class, options)).requireSuccess();
        assertThat(Files.readAllLines(loaded))
                .anyMatch(line -> line.contains(" me.tongfei.progressbar.ProgressBar "))
                .noneMatch(line -> line.contains(" org.jline.terminal."));
    }
}
