package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
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
                RankJvm jvm = new RankJvm(process, processes, port);
                started.add(start(jvm, ranksPerProcess, backend, suites));
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
            RankJvm jvm, int ranksPerProcess, TestBackend backend, List<Class<?>> suites)
            throws IOException {
        List<String> more = new ArrayList<>(options);
        more.add("-Ddeepep.ranksPerProcess=" + ranksPerProcess);
        more.add("-D" + TestBackends.SELECT + "=" + backend.name());
        List<String> arguments = new ArrayList<>();
        arguments.addAll(List.of("execute", "--disable-banner", "--details=summary"));
        arguments.addAll(List.of("--fail-if-no-tests", "--include-engine=junit-jupiter"));
        suites.forEach(suite -> arguments.add("--select-class=" + suite.getName()));
        String excludedTag = System.getProperty("deepep.excludedTag"); // the emulator's profile
        if (excludedTag != null) {
            arguments.add("--exclude-tag=" + excludedTag);
        }
        return jvm.of(more, ConsoleLauncher.class, arguments.toArray(String[]::new))
                .redirectOutput(output(jvm.rank()).toFile())
                .start();
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
