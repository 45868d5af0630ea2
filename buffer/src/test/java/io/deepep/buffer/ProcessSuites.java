package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.topology.HostTopology;
import io.deepep.spi.LoopbackPorts;
import io.deepep.testkit.Programs;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.platform.console.ConsoleLauncher;

/**
 * Runs conformance suites with ranks in several processes: the same suites in each of them.
 *
 * @param folder for their output
 * @param options of their JVMs
 */
record ProcessSuites(Path folder, List<String> options) {
    private static final Pattern COUNT = Pattern.compile("(\\d+) tests (\\w+)");

    /** Starts the processes and requires that their tests pass. */
    void run(int processes, int ranksPerProcess, TestBackend backend, List<Class<?>> suites)
            throws IOException, InterruptedException {
        List<Outcome> outcomes = outcomes(processes, ranksPerProcess, backend, suites);
        for (Outcome outcome : outcomes) {
            String output = outcome.output;
            assertThat(outcome.status).as(output).isZero();
            assertThat(outcome.count("failed")).as(output).isZero();
            assertThat(outcome.count("aborted")).as(output).isZero();
            assertThat(outcome.count("successful")).as(output).isGreaterThan(3);
        }
    }

    /** Starts the processes and waits for them. */
    List<Outcome> outcomes(
            int processes, int ranksPerProcess, TestBackend backend, List<Class<?>> suites)
            throws IOException, InterruptedException {
        int port = LoopbackPorts.free();
        List<Process> started = new ArrayList<>();
        List<Outcome> outcomes = new ArrayList<>();
        try {
            for (int process = 0; process < processes; process++) {
                started.add(start(process, processes, port, ranksPerProcess, backend, suites));
            }
            for (int process = 0; process < processes; process++) {
                int status = started.get(process).waitFor();
                outcomes.add(new Outcome(status, Files.readString(output(process))));
            }
        } finally {
            started.forEach(Process::destroyForcibly);
        }
        return outcomes;
    }

    private Process start(
            int process,
            int processes,
            int port,
            int ranksPerProcess,
            TestBackend backend,
            List<Class<?>> suites)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(Programs.SHORT_LIVED);
        command.addAll(
                List.of(
                        "-Xmx512m",
                        "--enable-native-access=ALL-UNNAMED",
                        "-Ddeepep.sysfs=" + HostTopology.SYSFS,
                        "-Ddeepep.ranksPerProcess=" + ranksPerProcess,
                        "-D" + TestBackends.SELECT + "=" + backend.name(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        ConsoleLauncher.class.getName(),
                        "execute",
                        "--disable-banner",
                        "--details=summary",
                        "--fail-if-no-tests",
                        "--include-engine=junit-jupiter"));
        suites.forEach(suite -> command.add("--select-class=" + suite.getName()));
        String transport = System.getProperty("deepep.transport"); // see TestNetworks
        if (transport != null) {
            command.add(1 + options.size(), "-Ddeepep.transport=" + transport);
        }
        String excludedTag = System.getProperty("deepep.excludedTag"); // the emulator's profile
        if (excludedTag != null) {
            command.add("--exclude-tag=" + excludedTag);
        }
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(new RankJvm(process, processes, port).environment());
        return builder.redirectErrorStream(true).redirectOutput(output(process).toFile()).start();
    }

    private Path output(int process) {
        return folder.resolve("process-" + process + ".txt");
    }

    /** How a process ended, and what it printed. */
    record Outcome(int status, String output) {
        /** Tests that {@code what}, as the summary counts them. */
        int count(String what) {
            Matcher matcher = COUNT.matcher(output);
            while (matcher.find()) {
                if (matcher.group(2).equals(what)) {
                    return Integer.parseInt(matcher.group(1));
                }
            }
            return 0;
        }
    }
}
