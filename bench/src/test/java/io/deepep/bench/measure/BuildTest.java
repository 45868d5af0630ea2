package io.deepep.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.testkit.Programs;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Records name the commit that was built, wherever the command is started. */
class BuildTest {
    /** Prints what a record says of this process. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) {
            System.out.println(Build.current().commit());
        }
    }

    @Test
    void anotherRepositoryAroundTheProcessChangesNothing(@TempDir Path folder) throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/git")), "git");
        String commit =
                "git init -q && git -c user.name=nobody -c user.email=nobody@example.org"
                        + " commit -q --allow-empty -m another && git rev-parse --short=12 HEAD";
        String other = lastLine(folder, new ProcessBuilder("sh", "-c", commit));
        String stamped = lastLine(folder, Programs.java(Program.class, List.of()));
        assertThat(other).matches("[0-9a-f]{12}");
        assertThat(stamped)
                .isNotEqualTo(other)
                .isEqualTo(Build.current().commit())
                .matches("unknown|[0-9a-f]{12}(-dirty)?");
    }

    private static String lastLine(Path folder, ProcessBuilder program) throws Exception {
        String output = Programs.run(program.directory(folder.toFile())).requireSuccess();
        return output.lines().toList().getLast();
    }
}
