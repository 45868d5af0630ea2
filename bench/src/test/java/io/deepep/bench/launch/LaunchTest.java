package io.deepep.bench.launch;

import static io.deepep.bench.CommandLines.run;
import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.CommandLines;
import io.deepep.bench.Outcome;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code deepep launch} with processes that are shell scripts. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Execution(ExecutionMode.CONCURRENT) // its cases wait
class LaunchTest {
    private static Outcome launch(int ranks, String script) {
        return launch("-n " + ranks, script);
    }

    private static Outcome launch(String options, String script) {
        List<String> command = new ArrayList<>(List.of("launch"));
        command.addAll(List.of(options.split(" ")));
        command.addAll(List.of("--", "sh", "-c", script));
        return run(command.toArray());
    }

    @Test
    void everyProcessLearnsItsPlaceAndWhereToMeet() {
        Outcome outcome =
                launch(
                        3,
                        "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE; echo $MASTER_ADDR:$MASTER_PORT"
                                + " $(cat $DEEPEP_SECRET_FILE) >&2; [ -z \"$DEEPEP_SECRET\" ]");
        assertThat(outcome.exitCode()).isZero();
        assertThat(outcome.outLines())
                .containsExactlyInAnyOrder("[0] 0/3 0/3", "[1] 1/3 1/3", "[2] 2/3 2/3");
        List<String> meetings = outcome.errLines().stream().map(line -> line.substring(4)).toList();
        assertThat(meetings).hasSize(3).allMatch(meetings.getFirst()::equals);
        assertThat(meetings.getFirst()).matches("127\\.0\\.0\\.1:[23][0-9]{4} [0-9a-f]{64}");
    }

    @Test
    void secretsAndPortsDiffer() {
        String script = "echo $MASTER_PORT; cat $DEEPEP_SECRET_FILE";
        assertThat(launch(1, script).outLines())
                .doesNotContainAnyElementsOf(launch(1, script).outLines());
    }

    @Test
    void theSecretIsInAFileOfTheirsAsLongAsTheyRun() {
        Outcome outcome = launch(1, "ls -l $DEEPEP_SECRET_FILE; echo $DEEPEP_SECRET_FILE");
        assertThat(outcome.outLines().getFirst()).startsWith("[0] -rw-------");
        assertThat(Path.of(outcome.outLines().get(1).substring(4))).doesNotExist();
    }

    @Test
    void theSecretIsFoundFromAnotherFolder() throws IOException, InterruptedException {
        ProcessBuilder launch =
                CommandLines.process(
                        "launch -n 1 -- sh -c", "cd / && wc -c \"$DEEPEP_SECRET_FILE\"");
        launch.environment().put("JDK_JAVA_OPTIONS", "-Djava.io.tmpdir=target");
        assertThat(Programs.run(launch).requireSuccess()).contains("[0] 64 /");
    }

    /** The end of one rank is not the end of the launcher. */
    @Test
    void aRankThatHasEndedTakesNothingAway() {
        Outcome outcome =
                launch(2, "[ $RANK = 0 ] || { sleep 1; cat $DEEPEP_SECRET_FILE >/dev/null; }");
        assertThat(outcome.exitCode()).isZero();
        assertThat(outcome.errLines()).isEmpty();
    }

    @Test
    void theFirstFailureEndsAll() {
        Outcome outcome =
                launch(
                        3,
                        "if [ $RANK = 1 ]; then sleep 1; exit 7; fi; sleep 600 & echo $$ $!; wait");
        assertThat(outcome.exitCode()).isEqualTo(7);
        assertThat(outcome.errLines())
                .containsExactly("deepep: rank 1 ended with exit code 7; ending the others");
        assertThat(outcome.outLines()).hasSize(2);
        for (String line : outcome.outLines()) {
            for (String pid : line.substring(4).split(" ", -1)) {
                assertDead(Long.parseLong(pid));
            }
        }
    }

    static void assertDead(long pid) {
        Optional<ProcessHandle> left = ProcessHandle.of(pid);
        left.ifPresent(handle -> handle.onExit().orTimeout(30, TimeUnit.SECONDS).join());
        assertThat(left.map(ProcessHandle::isAlive).orElse(false)).isFalse();
    }

    @Test
    void processesThatIgnoreTheRequestAreKilled() {
        Outcome outcome =
                launch(
                        2,
                        "if [ $RANK = 0 ]; then sleep 1; exit 3; fi; trap '' TERM; sleep 600; sleep 600");
        assertThat(outcome.exitCode()).isEqualTo(3);
    }

    /** A shell ends when it is asked to, and what it runs may not. */
    @Test
    void noProgramOutlivesTheScriptOfItsRank(@TempDir Path folder) {
        Path running = folder.resolve("running");
        Outcome outcome =
                launch(
                        2,
                        "if [ $RANK = 0 ]; then while [ ! -e %1$s ]; do sleep 0.1; done; exit 3; fi;"
                                        .formatted(running)
                                + " sh -c 'trap \"\" TERM; echo $$; : > %s; sleep 600; sleep 600'; echo never"
                                        .formatted(running));
        assertThat(outcome.exitCode()).isEqualTo(3);
        long program = Long.parseLong(outcome.outLines().getFirst().substring(4));
        try {
            assertDead(program);
        } finally {
            ProcessHandle.of(program)
                    .ifPresent(
                            left -> {
                                left.descendants().forEach(ProcessHandle::destroyForcibly);
                                left.destroyForcibly();
                            });
        }
    }

    @Test
    void aProcessThatIsKilledIsAFailure() {
        Outcome outcome = launch(2, "if [ $RANK = 1 ]; then kill -9 $$; fi; sleep 600");
        assertThat(outcome.exitCode()).isEqualTo(128 + 9);
        // A shell whose child ends by a signal may say so as well.
        assertThat(outcome.errLines())
                .filteredOn(line -> !line.startsWith("[0] "))
                .containsExactly(
                        "deepep: rank 1 ended with exit code 137 (killed, as when memory runs out); ending the others");
    }

    @Test
    void optionsBehindTheCommandAreTheCommands() {
        assertThat(runLine("launch -n 1 echo -n 4 --ranks").outLines())
                .containsExactly("[0] 4 --ranks");
    }

    /** As Java, or curl, reads it. */
    @Test
    void aFileBehindAnAtIsTheCommands(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("arguments"), "other words");
        assertThat(run("launch", "-n", 1, "echo", "@" + file).outLines())
                .containsExactly("[0] @" + file);
    }

    @Test
    void saysWhatIsWrong() {
        runLine("launch -n 2 -- /no/such/command").requireRefused("cannot start /no/such/command");
        Path folder = Path.of("src").toAbsolutePath();
        run("launch", "-n", 1, folder)
                .requireComplaint("deepep: launch: cannot start " + folder + ": it is a folder");
        run("launch", "-n", 1, "./pom.xml")
                .requireComplaint(
                        "deepep: launch: cannot start ./pom.xml: it is not executable; chmod +x it");
        runLine("launch -n 0 -- true").requireComplaint("deepep: --ranks=0 is not in [1, 2048]");
        assertThat(runLine("launch -n 2").exitCode()).isEqualTo(2);
        runLine("launch -n 1 -n 2 -- true")
                .requireComplaint(
                        "deepep: option '-n' (N) should be specified only once; see deepep launch --help");
        runLine("launch -- true").requireRefused("--nproc-per-node");
    }

    @Test
    void moreRanksThanFilesMayBeOpen() throws IOException, InterruptedException {
        ProcessBuilder launch = CommandLines.process("launch -n 200 -- sleep 600");
        launch.command().addAll(0, List.of("sh", "-c", "ulimit -n 256; exec \"$@\"", "launch"));
        Programs.Ended ended = Programs.run(launch);
        assertThat(ended.output())
                .containsPattern(
                        "deepep: launch: cannot start sleep: .*; if it is a limit, raise ulimit -n");
        assertThat(ended.status()).isEqualTo(2);
    }

    @Test
    void thePathMayHoldWhatTheLocaleCannotSpell() throws IOException, InterruptedException {
        ProcessBuilder launch = CommandLines.process("launch -n 1 -- echo hi");
        launch.environment().put("LC_ALL", "C");
        launch.environment().merge("PATH", "/home/jürgen/bin:", (old, first) -> first + old);
        assertThat(Programs.run(launch).requireSuccess()).contains("[0] hi");
        launch.command().set(launch.command().indexOf("echo"), "grüß");
        assertThat(Programs.run(launch).output()).contains("there is no such program");
    }

    @Test
    void startsAgainAfterAFailure(@TempDir Path folder) throws IOException {
        Outcome outcome =
                launch(
                        "-n 2 --max-restarts=2 --log-dir=" + folder.resolve("logs"),
                        "echo $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 7");
        assertThat(outcome.exitCode()).isZero();
        assertThat(outcome.errLines())
                .contains("deepep: starting all ranks again, restart 1 of at most 2")
                .noneMatch(line -> line.contains("restart 2"));
        for (int rank = 0; rank < 2; rank++) {
            assertThat(outcome.outLines()).contains("[" + rank + "] 1");
            assertThat(folder.resolve("logs/attempt-1/rank-" + rank + ".out"))
                    .content()
                    .isEqualTo("1\n");
            assertThat(folder.resolve("logs/attempt-1/rank-" + rank + ".err")).isEmptyFile();
        }
    }

    /** Before anything runs whose output would be lost. */
    @Test
    void filesThatCannotBeWrittenAreRefused(@TempDir Path folder) throws IOException {
        Path file = Files.createDirectories(folder.resolve("attempt-0/rank-1.err"));
        Outcome outcome = launch("-n 2 --log-dir=" + folder, "echo x");
        assertThat(outcome.outLines()).isEmpty();
        outcome.requireRefused("deepep: --log-dir: cannot write " + file + ": ");
        launch("-n 2 --log-dir=/proc/logs", "echo x")
                .requireComplaint(
                        "deepep: --log-dir: cannot make /proc/logs/attempt-0: NoSuchFileException");
    }

    @Test
    void aProgramThatIsMissingLeavesNoFiles(@TempDir Path folder) {
        run("launch", "-n", 2, "--log-dir", folder.resolve("logs"), "no-such-program")
                .requireComplaint(
                        "deepep: launch: cannot start no-such-program: there is no such program on the PATH");
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void aFullDiskIsToldOf(@TempDir Path folder) throws IOException {
        Path files = Files.createDirectories(folder.resolve("attempt-0"));
        Path full = Files.createSymbolicLink(files.resolve("rank-0.out"), Path.of("/dev/full"));
        Outcome outcome = launch("-n 1 --log-dir=" + folder, "echo x");
        assertThat(outcome.outLines()).containsExactly("[0] x");
        assertThat(outcome.errLines())
                .containsExactly(
                        "deepep: --log-dir: not all output of rank 0 could be written; make room there");
        Files.delete(full);
    }

    /** As on a full disk: no file may grow. */
    @Test
    void leavesNoSecretThatItCouldNotWrite(@TempDir Path folder) throws Exception {
        ProcessBuilder launcher = CommandLines.process("launch -n 1 -- true");
        launcher.command().addAll(0, List.of("sh", "-c", "ulimit -f 0; exec \"$@\"", "launch"));
        launcher.environment().put("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=" + folder);
        Programs.Ended ended = Programs.run(launcher);
        assertThat(ended.output()).contains("deepep: launch: cannot keep a secret in " + folder);
        assertThat(ended.status()).isEqualTo(2);
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givesUpAfterTheLastRestart() {
        Outcome outcome = launch("-n 1 --max-restarts=1", "echo x; exit 5");
        assertThat(outcome.exitCode()).isEqualTo(5);
        assertThat(outcome.outLines()).containsExactly("[0] x", "[0] x");
    }

    /** Systems delete what nobody has touched for days in their folder of temporary files. */
    @Test
    void startsAgainWhereTheSecretHasBeenCleanedAway() {
        Outcome outcome =
                launch(
                        "-n 1 --max-restarts=1",
                        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && { test -s $DEEPEP_SECRET_FILE; exit; }; rm $DEEPEP_SECRET_FILE; exit 5");
        assertThat(outcome.exitCode()).as("%s", outcome.errLines()).isZero();
    }

    /** In a process of its own, whose environment has the secret. */
    @Test
    void hostsOfOneJobAgree(@TempDir Path folder) throws Exception {
        Path secret =
                Files.writeString(folder.resolve("secret"), "0123456789abcdef0123456789abcdef");
        Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
        for (int node = 0; node < 2; node++) {
            ProcessBuilder builder =
                    CommandLines.process(
                            "launch --nproc-per-node=2 --nnodes=2 --master-addr=node0 --node-rank="
                                    + node
                                    + " -- sh -c",
                            "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK"
                                    + " $MASTER_ADDR:$MASTER_PORT $DEEPEP_SECRET_FILE");
            builder.environment().put("DEEPEP_SECRET_FILE", secret.toString());
            builder.environment().put("MASTER_PORT", node == 0 ? "" : " 29500");
            String output = Programs.run(builder).requireSuccess();
            int first = 2 * node;
            String meeting = " " + node + " node0:29500 " + secret;
            assertThat(output.lines())
                    .containsExactlyInAnyOrder(
                            "[" + first + "] " + first + "/4 0/2" + meeting,
                            "[" + (first + 1) + "] " + (first + 1) + "/4 1/2" + meeting);
            assertThat(secret).exists();
        }
    }

    @Test
    void severalHostsNeedMore() {
        runLine("launch -n 1 --nnodes=2 -- true")
                .requireComplaint(
                        "deepep: --node-rank is missing; give the number of this host, from 0");
        runLine("launch -n 3 --nnodes=700 --node-rank=0 -- true")
                .requireComplaint(
                        "deepep: --nnodes=700 x --ranks=3 exceed the 2048 ranks that a group can have; lower one of them");
        runLine("launch -n 1 --nnodes=2 --node-rank=2 -- true")
                .requireComplaint("deepep: --node-rank=2 is not from 0 to 1");
        runLine("launch -n 1 --nnodes=2 --node-rank=1 --master-addr=a -- true")
                .requireRefused(
                        "MASTER_ADDR=a", "neither DEEPEP_SECRET_FILE nor DEEPEP_SECRET is set; ");
        runLine("launch -n 1 --nnodes=2 --node-rank=1 --master-addr=node0:29500 -- true")
                .requireComplaint(
                        "deepep: --master-addr=node0:29500 has a port behind the host; give it by --master-port");
    }

    /** Not by every rank, and again after each restart. */
    @Test
    void variablesThatNoRankWouldTakeAreRefused(@TempDir Path folder) throws Exception {
        ProcessBuilder launch =
                CommandLines.process(
                        "launch -n 2 --nnodes=2 --node-rank=0 --master-addr=node0 -- echo started");
        launch.environment().put("DEEPEP_SECRET", "0123456789abcdef0123456789abcdef");
        launch.environment().put("DEEPEP_SECRET_FILE", folder.resolve("absent").toString());
        assertThat(Programs.run(launch).output())
                .contains("deepep: DEEPEP_SECRET and DEEPEP_SECRET_FILE are both set; unset one")
                .doesNotContain("started");
        launch.environment().remove("DEEPEP_SECRET");
        assertThat(Programs.run(launch).output())
                .contains("deepep: DEEPEP_SECRET_FILE=" + folder + "/absent cannot be read")
                .doesNotContain("started");
    }

    /** Each host would run a group of its own, and find nothing wrong. */
    @ParameterizedTest
    @ValueSource(strings = {"--node-rank=1", "--master-addr=node0", "--master-port=29500"})
    void severalHostsAreCounted(String option) {
        runLine("launch -n 1 " + option + " -- true")
                .requireComplaint(
                        "deepep: --nnodes is missing; --node-rank, --master-addr and --master-port are for several"
                                + " hosts");
    }

    /** As scripts count them that run on any number. */
    @Test
    void oneHostMayBeCountedToo() {
        String options = "--node-rank=0 --master-addr=node0 --master-port=29500";
        assertThat(runLine("launch -n 1 --nnodes=1 " + options + " -- echo x").outLines())
                .containsExactly("[0] x");
        runLine("launch -n 1 --nnodes=1 --node-rank=1 -- true")
                .requireComplaint("deepep: --node-rank=1 is not from 0 to 0");
    }
}
