package io.deepep.bench;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.run.Console;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The command from its arguments to its exit code and last line, on small shapes. */
final class CommandLineTest {
    private static final String SMALL =
            " --backend host --num-tokens 5 --hidden 256 --num-topk 3 --timeout 30";

    private static void requirePassed(Outcome outcome) {
        assertThat(outcome.outLines()).noneMatch(line -> line.endsWith("FAIL"));
        assertThat(outcome.requirePassed().outLines().getLast())
                .matches("[1-9][0-9]* passed, 0 failed");
        long passed = outcome.outLines().stream().filter(line -> line.endsWith("PASS")).count();
        assertThat(outcome.outLines().getLast()).isEqualTo(passed + " passed, 0 failed");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "test-intranode --ranks 2 --num-experts 8",
                "test-intranode --ranks 3 --num-experts 12 --distribution zipf --masked-ratio 0.2 --seed 4",
                "test-intranode --ranks 1 --num-experts 4",
                "test-internode --nodes 2 --ranks-per-node 2 --num-experts 16",
                "test-internode --nodes 3 --ranks 1 --num-experts 12 --sms 4",
                "test-internode --nodes 2 --ranks-per-node 2 --num-experts 32 --num-topk-groups 2",
                "test-low-latency --ranks 2 --num-experts 8 --sms 5",
                "test-low-latency --nodes 2 --ranks-per-node 2 --num-experts 8"
            })
    void testsPass(String arguments) {
        requirePassed(runLine(arguments + SMALL));
    }

    @Test
    void hiddenThatFp8DoesNotAllowRunsWithoutFp8() {
        String narrow = SMALL.replace("--hidden 256", "--hidden 40");
        Outcome outcome = runLine("test-intranode --ranks 2 --num-experts 8" + narrow);
        assertThat(outcome.outLines()).contains("hidden 40 is not a multiple of 128: without FP8");
        assertThat(outcome.outLines()).noneMatch(line -> line.startsWith("fp8"));
        requirePassed(outcome);
    }

    @Test
    void bytesOfBothLinksAreReported() {
        Outcome outcome =
                runLine("test-internode --nodes 2 --ranks-per-node 2 --num-experts 16" + SMALL);
        assertThat(outcome.outLines())
                .anyMatch(line -> line.contains("NVLink MB sent") && line.contains("RDMA MB sent"));
        assertThat(outcome.outLines())
                .anyMatch(
                        line -> line.startsWith("dispatch (FP8)") && line.contains("GB/s (RDMA)"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "test-intranode --ranks 8 --num-experts 250 | deepep: --num-experts=250 is not a multiple of the number of ranks, 8;"
                        + " give 256, for example",
                "test-intranode --hidden 100 | deepep: hidden=100 is not a positive multiple of 8",
                "test-low-latency --hidden 200 | deepep: hidden=200 is not a positive multiple of 128",
                "test-intranode --ranks 2 --num-topk 9 --num-experts 8 | deepep: --num-topk=9 exceeds --num-experts=8; change one of them",
                "test-intranode --num-topk 33 | deepep: --num-topk=33 is not in [1, 32]",
                "test-intranode --ranks 73 | deepep: --ranks=73 is not in [1, 72]",
                "test-intranode --ranks 0 | deepep: --ranks=0 is not in [1, 72]",
                "test-internode --nodes 0 | deepep: --nodes=0 is not in [1, 2048]",
                "test-low-latency --nodes 2 --ranks-per-node 73 | deepep: --ranks-per-node=73 is not in [1, 72]",
                "test-intranode --num-tokens 0 | deepep: --num-tokens=0 must be at least 1",
                "test-low-latency --num-tokens 2000 | deepep: maxTokens=2000 is not in [1, 1024]",
                "test-intranode --sms 3 | deepep: --sms: numSms=3 must be 1 or an even number of at least 2",
                "test-intranode --timeout 0 | deepep: --timeout=0 is not in [1, 1000000]",
                "test-intranode --masked-ratio 1.5 | deepep: --masked-ratio=1.5 is not in [0, 1]",
                "test-intranode --bogus | deepep: Unknown option: '--bogus'; see deepep test-intranode --help",
                "test-intranode extra | deepep: Unmatched argument at index 1: 'extra'; see deepep test-intranode --help",
                "bench normal --repeats 0 | deepep: --repeats=0 is not in [1, 1000000]",
                "bench normal --json /no/such/folder/x.json | deepep: --json=/no/such/folder/x.json: there is no folder /no/such/folder",
                "bench normal --profile . | deepep: --profile=. is a folder; name a file in it",
                "bench normal --backend host --profile p | deepep: --profile=p is for GPUs, but this is the HOST backend",
                "bench | deepep: no mode given; use bench normal, bench low-latency, bench decode or bench put; see deepep bench --help",
                "bench nonsense | deepep: there is no command deepep bench nonsense; see deepep bench --help",
                "nonsense | deepep: there is no command deepep nonsense; see deepep --help",
                "bench normal --warmups -1 | deepep: --warmups=-1 is not in [0, 1000000]",
                "bench normal --json . | deepep: --json=. is a folder; name a file in it",
                "test-intranode --jfr . | deepep: --jfr=. is a folder; name a file in it",
                "test-intranode --num-topk 0 | deepep: --num-topk=0 is not in [1, 32]",
                "test-intranode --distribution zipf --num-groups 4 | deepep: --num-groups and --num-topk-groups"
                        + " do not go with --distribution=zipf; use --distribution group-limited",
                "test-intranode --num-groups 7 | deepep: numExperts=256 is not a multiple of numGroups=7",
                "bench put --ranks 1 | deepep: --ranks=1 is not in [2, 1024]",
                "bench put --sizes 64,24 | deepep: --sizes: 24 is not a multiple of 16",
                "bench put --network nvshmem | deepep: each of the 2 ranks needs its own process; start them with deepep launch -n 2",
                "bench put --transport ibgda | deepep: --transport and --bootstrap-interface need --network=nvshmem",
                "bench put --pure-rdma | deepep: --pure-rdma, --nic-mapping, --nic-handler, --qp-depth, --gid-index,"
                        + " --traffic-class and --service-level need --network=nvshmem or --network=ibgda",
                "test-low-latency --network nvshmem --mtu 1024 | deepep: --mtu, --retries, --ack-timeout, --adaptive-routing"
                        + " and --strict-ordering need --network=ibgda",
                "bench put --network ibgda | deepep: bench put measures peer memory and nvshmem; give --network=nvshmem, or"
                        + " leave it out",
                "test-low-latency --sms 0 | deepep: --sms=0 is not in [1, 1024]",
                "bench put --sms 0 | deepep: --sms=0 is not in [1, 1024]",
                "test-intranode --routing /no/such.npy | deepep: --routing: there is no file /no/such.npy",
                "test-intranode --ranks x | deepep: Invalid value for option '--ranks': 'x' is not an int;"
                        + " see deepep test-intranode --help",
                "test-internode --ranks-per-node=x | deepep: Invalid value for option '--ranks-per-node': 'x' is not"
                        + " an int; see deepep test-internode --help",
                "launch -n x true | deepep: Invalid value for option '-n': 'x' is not an int; see deepep launch --help",
                "test-internode --nodes 64 --ranks-per-node 72 | deepep: 64 nodes x 72 ranks"
                        + " exceed 2048 ranks; lower --nodes or --ranks-per-node",
                "test-intranode --masked-ratio NaN | deepep: --masked-ratio=NaN is not in [0, 1]",
                "launch -n 1 --nnodes 2 --node-rank 0 --master-addr a --master-port 0 true | deepep:"
                        + " --master-port=0 is not in [1, 65535]",
                "launch -n 1 --nnodes 2 --node-rank 0 --master-addr a --max-restarts 2147483647 true | deepep:"
                        + " --max-restarts=2147483647 needs as many ports behind --master-port=29500, but 65535 is the last; lower one of them",
                "chaos --ranks 73 | deepep: --ranks=73 exceeds the 72 that a node can have; give --ranks-per-node",
                "chaos --ranks 146 --ranks-per-node 73 | deepep: --ranks-per-node=73 is not in [1, 72]",
                "plan --nodes -2147483647 | deepep: --nodes=-2147483647 is not in [1, 2048]",
                "plan --nic-gbps 1e300 | deepep: nicGbps=1.0E300 is not in [0.001, 1000000.0]",
                "jmh -bm fast | deepep: jmh: Unable to parse benchmark mode: \"fast\" Known values are"
                        + " [Throughput/thrpt, AverageTime/avgt, SampleTime/sample, SingleShotTime/ss, All/all]",
                "launch -n 100000 true | deepep: --ranks=100000 is not in [1, 2048]",
                "launch -n 1 --nnodes 2147483647 true | deepep: --nnodes=2147483647 is not in [1, 2048]",
                "jmh --bogus | deepep: jmh: bogus is not a recognized option",
                "bench normal --json /proc/x.json | deepep: --json: cannot write /proc/x.json: NoSuchFileException",
                "plan --json /proc/x.json | deepep: --json: cannot write /proc/x.json: NoSuchFileException",
                "test-intranode --jfr /proc/x.jfr | deepep: --jfr: cannot write /proc/x.jfr: NoSuchFileException",
                "test-intranode --routing-weights w.npy | deepep: --routing-weights needs --routing",
            })
    void wrongUsageIsOneLineAndExitCode2(String arguments, String complaint) {
        runLine(arguments).requireComplaint(complaint);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "no-such-command",
                "test-intranode --ranks two",
                "test-intranode --ranks",
                "test-intranode --backend tpu",
                "test-intranode --distribution normal",
                "test-intranode --distribution uniform --num-topk-groups 2",
                "test-intranode --num-topk-groups 9",
                "test-internode --nodes 100000 --ranks-per-node 100000",
                "test-internode --nodes 64 --num-tokens 100000 --num-experts 512"
            })
    void whatCannotBeIsRefusedInOneLine(String arguments) {
        Outcome outcome = runLine(arguments);
        outcome.requireRefused("deepep: ");
        assertThat(outcome.err()).doesNotContain("Exception");
    }

    @Test
    void outputThatIsLostIsAComplaint() {
        Writer full =
                new Writer() {
                    @Override
                    public void write(char[] text, int offset, int length) throws IOException {
                        throw new IOException("No space left on device");
                    }

                    @Override
                    public void flush() {}

                    @Override
                    public void close() {}
                };
        StringWriter err = new StringWriter();
        Console console = new Console(new PrintWriter(full), new PrintWriter(err), false);
        int exitCode = Main.run(Main.commandLine(console), console, "--help");
        assertThat(err).hasToString("deepep: standard output could not be written to its end\n");
        assertThat(exitCode).isEqualTo(2);
    }

    /** Ranks take it in threads of their own, oracles in parallel. */
    @ParameterizedTest
    @ValueSource(strings = {"test-intranode --num-tokens 256", "test-low-latency"})
    void tooLittleMemoryIsAComplaint(String command) throws Exception {
        ProcessBuilder builder =
                CommandLines.process(command + " --backend host --ranks 2 --num-experts 8");
        builder.environment().put("JAVA_TOOL_OPTIONS", "-XX:MaxDirectMemorySize=8m");
        Programs.Ended ended = Programs.run(builder);
        assertThat(ended.output().lines())
                .anyMatch(line -> line.startsWith("deepep: out of memory (Cannot reserve"))
                .noneMatch(line -> line.startsWith("\tat "));
        assertThat(ended.status()).isEqualTo(2);
    }

    @Test
    void memoryDoesNotHelpWhereThreadsAreLacking() {
        assertThat(Main.cure("unable to create native thread: possibly out of memory"))
                .contains("ulimit -u")
                .doesNotContain("-Xmx");
    }

    /** A larger heap would leave less. */
    @Test
    void heapDoesNotHelpWhereOtherMemoryIsLacking() {
        assertThat(
                        List.of(
                                "cannot allocate 9 bytes of off-heap memory",
                                "Unable to allocate 9 bytes"))
                .allSatisfy(
                        lacking ->
                                assertThat(Main.cure(lacking))
                                        .contains("ulimit -v")
                                        .doesNotContain("-Xmx"));
    }

    /** A recording that was begun and never written would be an empty file. */
    @Test
    void refusedCommandsLeaveNoFiles(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("r");
        assertThat(runLine("test-intranode --hidden 100 --jfr " + file).exitCode()).isEqualTo(2);
        assertThat(runLine("test-intranode --ranks 73 --jfr " + file).exitCode()).isEqualTo(2);
        assertThat(runLine("bench normal --hidden 100 --json " + file).exitCode()).isEqualTo(2);
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void unreadableRoutingIsRefused(@TempDir Path folder) throws Exception {
        Path file =
                Files.writeString(folder.resolve("routing.npy"), "this is not a NumPy file at all");
        runLine("test-intranode --routing " + file)
                .requireComplaint(
                        "deepep: --routing: "
                                + file
                                + ": not a .npy file, it does not begin with \\x93NUMPY");
    }

    /** JMH prints to the standard output of the process, and knows only one of them. */
    @ParameterizedTest
    @ValueSource(strings = {"jmh -h", "jmh --help"})
    void jmhHasHelp(String arguments) {
        runLine(arguments).requirePassed();
    }

    /** The line before it may say that there is no GPU. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "jmh [ | deepep: jmh: [ is not a regular expression: Unclosed character class",
                "jmh -e ( Host | deepep: jmh: ( is not a regular expression: Unclosed group",
                "jmh NoSuchBenchmark | deepep: jmh: no such benchmark; deepep jmh -l lists all"
            })
    void jmhIsToldWhichBenchmarks(String arguments, String complaint) {
        Outcome outcome = runLine(arguments);
        assertThat(outcome.exitCode()).isEqualTo(2);
        assertThat(outcome.errLines().getLast()).isEqualTo(complaint);
    }

    @Test
    void helpNamesDefaultsAndExitCodes() {
        Outcome help = runLine("test-low-latency --help");
        assertThat(help.exitCode()).isZero();
        // Where lines break depends on the defaults.
        assertThat(String.join(" ", help.outLines()).replaceAll("\\s+", " "))
                .contains("(default: 288)", "--num-topk", "--routing: 128.", "any number from 1")
                .doesNotContain("RDMA channels");
        assertThat(String.join(" ", runLine("--help").outLines()).replaceAll(" +", " "))
                .contains("2 for wrong options", "test-internode");
    }
}
