package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.platform.console.ConsoleLauncher;

/** Runs the conformance suites of the host backend with ranks in several processes. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostProcessConformanceTest {
    private static final Pattern COUNT = Pattern.compile("(\\d+) tests (\\w+)");

    @TempDir private Path folder;

    @ParameterizedTest
    @CsvSource({
        "2, 1, HostNormalConformanceTest",
        "2, 1, HostLowLatencyConformanceTest",
        "4, 1, HostNormalConformanceTest",
        "2, 2, HostLowLatencyConformanceTest"
    })
    void ranksInProcesses(int processes, int ranksPerProcess, String suite) throws Exception {
        int port = freePort();
        List<Process> started = new ArrayList<>();
        try {
            for (int process = 0; process < processes; process++) {
                started.add(start(process, processes, port, ranksPerProcess, suite));
            }
            for (int process = 0; process < processes; process++) {
                int status = started.get(process).waitFor();
                String output = Files.readString(output(process));
                assertThat(status).as(output).isZero();
                assertThat(count("failed", output)).isZero();
                assertThat(count("successful", output)).as(output).isGreaterThan(10);
            }
        } finally {
            started.forEach(Process::destroyForcibly);
        }
    }

    private Process start(int process, int processes, int port, int ranksPerProcess, String suite)
            throws IOException {
        ProcessBuilder builder =
                new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-modules=jdk.incubator.vector",
                        "-Ddeepep.ranksPerProcess=" + ranksPerProcess,
                        "-cp",
                        System.getProperty("java.class.path"),
                        ConsoleLauncher.class.getName(),
                        "execute",
                        "--disable-banner",
                        "--details=summary",
                        "--fail-if-no-tests",
                        "--include-engine=junit-jupiter",
                        "--select-class=io.deepep.buffer." + suite);
        builder.environment()
                .putAll(
                        Map.of(
                                "RANK", Integer.toString(process),
                                "WORLD_SIZE", Integer.toString(processes),
                                "LOCAL_RANK", Integer.toString(process),
                                "LOCAL_WORLD_SIZE", Integer.toString(processes),
                                "MASTER_ADDR", "127.0.0.1",
                                "MASTER_PORT", Integer.toString(port)));
        return builder.redirectErrorStream(true).redirectOutput(output(process).toFile()).start();
    }

    private Path output(int process) {
        return folder.resolve("rank-" + process + ".txt");
    }

    private static int count(String what, String output) {
        Matcher matcher = COUNT.matcher(output);
        while (matcher.find()) {
            if (matcher.group(2).equals(what)) {
                return Integer.parseInt(matcher.group(1));
            }
        }
        return 0;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
