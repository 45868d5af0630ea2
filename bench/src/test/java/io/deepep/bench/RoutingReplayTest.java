package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.routing.RoutingFiles;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Recorded routings, from the file to the last line. */
final class RoutingReplayTest {
    private static Outcome run(String arguments) {
        return CommandLines.runLine("test-intranode --backend host " + arguments);
    }

    @Test
    void aNumpyFileIsSplitAmongTheRanks(@TempDir Path folder) throws Exception {
        Path file =
                RoutingFiles.npyI64(
                        folder.resolve("r.npy"), new long[] {5, 2}, 0, 1, 2, 3, 4, 5, 6, 7, -1, 0);
        Outcome outcome = run("--ranks 2 --num-experts 8 --hidden 256 --routing " + file);
        assertThat(outcome.requirePassed().out())
                .contains("up to 3 tokens each, hidden 256, top-2 of 8 experts");
    }

    @Test
    void anExpertOutOfRangeIsRefused(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 8);
        run("--ranks 2 --num-experts 8 --routing " + file)
                .requireComplaint(
                        "deepep: --routing: "
                                + file
                                + ": rank 1, token 0: expert=8 is not in [-1, 8)");
    }

    @Test
    void optionsOfRandomRoutingDoNotGoWithAFile(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 3);
        String routing = " --routing " + file;
        run("--num-tokens 4" + routing).requireRefused("--num-tokens=4 does not go with --routing");
        run("--num-topk 3" + routing).requireRefused("which has 2 experts per token");
        run("--distribution zipf" + routing).requireRefused("the file gives the whole routing");
    }

    @Test
    void noMoreTokensAreMeasuredThanTheFileHas(@TempDir Path folder) throws Exception {
        Path file = RoutingFiles.npyI64(folder.resolve("r.npy"), new long[] {2, 2}, 0, 1, 2, 3);
        CommandLines.runLine(
                        "bench low-latency --backend host --ranks 2 --num-experts 8 --hidden 256"
                                + " --measured-tokens 2 --routing "
                                + file)
                .requireComplaint(
                        "deepep: --measured-tokens=2 is not in [1, 1], the tokens that a rank can have");
    }
}
