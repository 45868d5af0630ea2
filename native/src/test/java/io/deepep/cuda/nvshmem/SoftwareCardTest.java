package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.CardFolder;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * NVSHMEM's own transport plugins, as shipped, over the card in software (src/softcard): two
 * processes that put, signal and add, in memory of the host.
 */
@Tag("checkout")
class SoftwareCardTest {
    private static final Path SOURCES = Path.of("src/softcard");
    private static final Path HEADERS = Path.of("/usr/include/infiniband/mlx5dv.h");

    private static final Pattern COUNTER = Pattern.compile("(\\w+)=(\\d+)");

    @TempDir private static Path folder;
    private static Path libraries;
    private static Path program;
    private static Path nvshmem;

    @TempDir private Path shared;

    @BeforeAll
    static void build() throws Exception {
        Assumptions.assumeTrue(Files.exists(SOURCES), SOURCES + " is not here");
        Assumptions.assumeTrue(Files.exists(HEADERS), "no libibverbs-dev: " + HEADERS);
        String home = System.getenv().getOrDefault("NVSHMEM_HOME", "");
        Assumptions.assumeTrue(
                Files.exists(Path.of(home, "include/non_abi/nvshmem_version.h")),
                "NVSHMEM_HOME names no NVSHMEM");
        nvshmem = Path.of(home);
        libraries = Path.of("target/softcard").toAbsolutePath();
        Programs.run(SOURCES.resolve("build.sh").toString(), libraries.toString()).requireSuccess();
        program = compile("transport_test", "-rdynamic", "-I" + nvshmem.resolve("include"), "-ldl");
    }

    private static Path compile(String source, String... options) throws Exception {
        Path target = folder.resolve(source);
        List<String> command = new ArrayList<>(List.of("g++", "-std=c++20", "-O1", "-pthread"));
        command.addAll(List.of("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"));
        command.addAll(List.of("-o", target.toString(), SOURCES + "/test/" + source + ".cpp"));
        command.addAll(Arrays.asList(options));
        Programs.run(command.toArray(String[]::new)).requireSuccess();
        return target;
    }

    private static Programs.Ended run(Map<String, String> environment, String... command)
            throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        return Programs.run(builder);
    }

    /** Runs cases with the settings that the library makes, changed by {@code environment}. */
    private Programs.Ended run(
            NvshmemTransport transport, Map<String, String> environment, String... cases)
            throws Exception {
        Map<String, String> all =
                new TreeMap<>(
                        FakeNvshmem.options(transport)
                                .withQueues(4, 1024, List.of())
                                .environment());
        all.put("LD_LIBRARY_PATH", libraries.toString());
        all.put("DEEPEP_CARD_FOLDER", shared.toString());
        all.putAll(environment);
        Path plugin = nvshmem.resolve("lib").resolve(transport.plugin().orElseThrow());
        List<String> command = new ArrayList<>(List.of(program.toString(), plugin.toString()));
        command.addAll(Arrays.asList(cases));
        return run(all, command.toArray(String[]::new));
    }

    private Map<String, Long> counters(int process) throws IOException {
        String text = Files.readString(shared.resolve("counters-" + process));
        String sum = text.lines().filter(line -> line.startsWith("sum ")).findFirst().orElseThrow();
        Map<String, Long> counters = new TreeMap<>();
        Matcher entries = COUNTER.matcher(sum);
        while (entries.find()) {
            counters.put(entries.group(1), Long.valueOf(entries.group(2)));
        }
        return counters;
    }

    /** What IBGDA's queues need, written by a CPU: no GPU writes them here. */
    @Test
    void queuesInMemoryOfTheUser() throws Exception {
        Path test =
                compile("queue_test", "-L" + libraries, "-l:libibverbs.so.1", "-l:libmlx5.so.1");
        Programs.Ended run =
                run(
                        Map.of(
                                "LD_LIBRARY_PATH",
                                libraries.toString(),
                                "DEEPEP_CARD_FOLDER",
                                shared.toString()),
                        test.toString());
        run.requireSuccess();
        assertThat(run.output()).contains("ok states", "ok wraps", "ok keys", "ok stale entry");
    }

    @ParameterizedTest
    @EnumSource(names = {"IBRC", "IBDEVX"})
    void dataArriveAsTheyWereSentAndBeforeTheirSignals(NvshmemTransport transport)
            throws Exception {
        Programs.Ended run = run(transport, Map.of(), "puts", "signals", "adds");
        run.requireSuccess();
        assertThat(run.output()).contains("ok puts", "ok signals", "ok adds");
        for (int process = 1; process <= 2; process++) {
            Map<String, Long> counters = counters(process);
            assertThat(counters.get("errors")).isZero();
            assertThat(counters.get("completions")).isEqualTo(counters.get("entries"));
            // 8 puts of 3104141 bytes from each, 1000 atomics, 400 rows of 1000 bytes from PE 0.
            long rows = (counters.get("writes") - 8) * 1000;
            assertThat(counters.get("bytes") - rows - 8 * counters.get("inline"))
                    .isEqualTo(3_104_141);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "IBRC, delay 300;bandwidth 400, 7",
        "IBDEVX, delay 300;bandwidth 400, 8",
        "IBRC, stall 5 300, 9",
        "IBDEVX, port-down 5 100, 10"
    })
    void slowOrInterruptedNetworkKeepsOrder(NvshmemTransport transport, String faults, String seed)
            throws Exception {
        Programs.Ended run =
                run(
                        transport,
                        Map.of("DEEPEP_CARD_FAULTS", faults, "DEEPEP_CARD_SEED", seed),
                        "puts",
                        "adds");
        run.requireSuccess();
    }

    /** What a later one has told, an earlier one never takes back. */
    @ParameterizedTest
    @EnumSource(names = {"IBRC", "IBDEVX"})
    void acknowledgementsAreSignalsThatKeepTheirOrder(NvshmemTransport transport) throws Exception {
        Programs.Ended run = run(transport, Map.of(), "acknowledgements");
        run.requireSuccess();
    }

    /** IBDEVX carries puts to memory with relaxed ordering. */
    @Test
    void asPutsOlderAcknowledgementsMayComeLastUnderIbdevx() throws Exception {
        Programs.Ended run = run(NvshmemTransport.IBDEVX, Map.of(), "acknowledgements-as-puts");
        run.requireSuccess();
    }

    /** So that order holds, and a PE has one port whatever it is shown. */
    @ParameterizedTest
    @EnumSource(names = {"IBRC", "IBDEVX"})
    void ofTwoPortsTheProxyUsesTheFirst(NvshmemTransport transport) throws Exception {
        Programs.Ended run =
                run(
                        transport,
                        Map.of(
                                "TEST_PORTS", "2",
                                "DEEPEP_CARD_PORTS", "2",
                                "NVSHMEM_HCA_LIST", "mlx5_0:1,mlx5_0:2"),
                        "puts",
                        "signals");
        run.requireSuccess();
        assertThat(new CardFolder(shared).bytesByPort()).containsOnlyKeys("mlx5_0:1");
    }

    /** NVSHMEM's own choice: signals of IBRC are writes to memory with relaxed ordering. */
    @Test
    void withoutOurSettingsSignalsOvertakeDataUnderIbrc() throws Exception {
        Programs.Ended run =
                run(
                        NvshmemTransport.IBRC,
                        Map.of("NVSHMEM_IB_ENABLE_RELAXED_ORDERING", "1"),
                        "overtaken");
        run.requireSuccess();
    }

    /** IBDEVX's fence waits for the first of its queues alone. */
    @Test
    void withSeveralQueuesSignalsOvertakeDataUnderIbdevx() throws Exception {
        Programs.Ended run =
                run(
                        NvshmemTransport.IBDEVX,
                        Map.of(
                                "NVSHMEM_IB_NUM_RC_PER_DEVICE",
                                "4",
                                "DEEPEP_CARD_FAULTS",
                                "delay 300"),
                        "overtaken");
        run.requireSuccess();
    }

    @ParameterizedTest
    @CsvSource({
        "IBRC, fail 10 retry-exceeded, transport retry exceeded",
        "IBRC, wrong-key 10, remote access error",
        "IBRC, fail 3 remote-operation, remote operation error",
        "IBDEVX, fail 10 retry-exceeded, transport retry exceeded",
        "IBDEVX, wrong-key 10, remote access error",
        "IBDEVX, port-down 3 5000, transport retry exceeded"
    })
    void transportLearnsOfErrors(NvshmemTransport transport, String fault, String error)
            throws Exception {
        Programs.Ended run =
                run(
                        transport,
                        Map.of("DEEPEP_CARD_FAULTS", fault, "DEEPEP_CARD_RETRY", "300"),
                        "refused");
        run.requireSuccess();
        assertThat(run.output()).contains("fails: " + error);
    }
}
