package io.deepep.bench.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.CommandLines;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The commands in the jobs for clusters are ones that exist. */
@Tag("checkout")
class DeployFilesTest {
    private static final Path DEPLOY = Path.of("..", "deploy");

    @Test
    void kubernetesStartsALauncher() throws IOException {
        String job = Files.readString(DEPLOY.resolve("kubernetes.yaml"));
        String args = job.substring(job.indexOf("args:"), job.indexOf("env:"));
        List<String> words =
                Pattern.compile("- (\\S+)")
                        .matcher(args.replace("$(NODE_RANK)", "1"))
                        .results()
                        .map(match -> match.group(1))
                        .toList();
        assertThat(words).startsWith("launch").contains("--node-rank=1", "--");
        requireCommands(words);
    }

    @Test
    void slurmStartsALauncher() throws IOException {
        String job = Files.readString(DEPLOY.resolve("slurm.sh"));
        Matcher launch =
                Pattern.compile("/bin/deepep\" (launch .*) -- \"\\$@\"")
                        .matcher(job.replace("\\\n", " "));
        assertThat(launch.find()).isTrue();
        Matcher command = Pattern.compile("/bin/deepep\" (test-internode .*)\\n").matcher(job);
        assertThat(command.find()).isTrue();
        requireCommands(words(launch.group(1) + " -- deepep " + command.group(1)));
    }

    private static List<String> words(String shell) {
        return List.of(shell.replaceAll("\"[^\"]*\\$\\w+\"", "1").strip().split(" +", -1));
    }

    /** The launcher's, and behind the two dashes that of the ranks. */
    private static void requireCommands(List<String> words) {
        int dashes = words.indexOf("--");
        assertThat(words.get(dashes + 1)).isEqualTo("deepep");
        List<String> ranks = words.subList(dashes + 2, words.size());
        CommandLines.parse(words.toArray(String[]::new));
        CommandLines.parse(ranks.toArray(String[]::new));
    }
}
