package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.routing.RoutingFiles;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Recorded routings, from the file to the last line. */
final class RoutingReplayTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... arguments) {
        List<String> onHost = new ArrayList<>(List.of(arguments));
        onHost.addAll(List.of("--backend", "host"));
        return Main.run(onHost.toArray(String[]::new), new PrintWriter(out), new PrintWriter(err));
    }

    @Test
    void aNumpyFileIsSplitAmongTheRanks(@TempDir Path folder) throws Exception {
        Path file =
                RoutingFiles.npyI64(
                        folder.resolve("r.npy"), new long[] {5, 2}, 0, 1, 2, 3, 4, 5, 6, 7, -1, 0);
        int exitCode =
                run(
                        "test-intranode",
                        "--ranks",
                        "2",
                        "--num-experts",
                        "8",
                        "--hidden",
                        "256",
                        "--routing",
                        file.toString());
        assertThat(err.toString()).isEmpty();
        assertThat(out.toString()).contains("up to 3 tokens each, hidden 256, top-2 of 8 experts");
        assertThat(exitCode).isZero();
    }

    @Test
    void anExpertOutOfRangeIsRefused(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 8);
        int exitCode =
                run(
                        "test-intranode",
                        "--ranks",
                        "2",
                        "--num-experts",
                        "8",
                        "--routing",
                        file.toString());
        assertThat(err.toString().strip())
                .isEqualTo(
                        "deepep: --routing: "
                                + file
                                + ": rank 1, token 0: expert=8 is not in [-1, 8)");
        assertThat(exitCode).isEqualTo(2);
    }

    @Test
    void optionsOfRandomRoutingDoNotGoWithAFile(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 3);
        assertThat(run("test-intranode", "--num-tokens", "4", "--routing", file.toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("--num-tokens=4 does not go with --routing");
        assertThat(run("test-intranode", "--num-topk", "3", "--routing", file.toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("which has top-2");
        assertThat(run("test-intranode", "--distribution", "zipf", "--routing", file.toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("the file says it all");
    }
}
