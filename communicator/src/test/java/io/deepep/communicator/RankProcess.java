package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A {@link RankProgram} that a test started. */
final class RankProcess implements AutoCloseable {
    private final Process process;
    private final PrintWriter input;
    private final BufferedReader output;

    private RankProcess(Process process) {
        this.process = process;
        this.input = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
        this.output = process.inputReader(StandardCharsets.UTF_8);
    }

    /**
     * Starts one.
     *
     * @param variables of its environment, where nothing else says who it is
     * @param startMillis how long it waits for the other ranks at the start
     * @param callMillis how long it waits for them in a call
     */
    static RankProcess start(Map<String, String> variables, long startMillis, long callMillis)
            throws IOException {
        return start(List.of(), variables, startMillis, callMillis);
    }

    /**
     * Starts one under another command.
     *
     * @param under that command, with its options
     */
    static RankProcess start(
            List<String> under, Map<String, String> variables, long startMillis, long callMillis)
            throws IOException {
        List<String> command = new ArrayList<>(under);
        command.addAll(
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx128m",
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        "-XX:-UsePerfData", // its lock may make a JVM warn on stdout
                        "-cp",
                        System.getProperty("java.class.path"),
                        RankProgram.class.getName(),
                        Long.toString(startMillis),
                        Long.toString(callMillis)));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(variables);
        return new RankProcess(builder.redirectErrorStream(true).start());
    }

    /** Tells it something; the answer is read apart, as others may have to be told first. */
    void tell(String line) {
        input.println(line);
    }

    /** Its next line. */
    String hear() throws IOException {
        return output.readLine();
    }

    /** Tells it something that it answers by itself. */
    String ask(String line) throws IOException {
        tell(line);
        return hear();
    }

    /** Waits until it no longer believes in {@code rank}. */
    void awaitDeathOf(int rank) throws IOException, InterruptedException {
        while (!ask("alive " + rank).equals("false")) {
            Thread.sleep(50);
        }
    }

    /** Lets it leave the group and end; everything that it still says. */
    List<String> leave() throws InterruptedException {
        input.close();
        List<String> rest = output.lines().toList();
        assertThat(process.waitFor(2, TimeUnit.MINUTES)).as("the process ends").isTrue();
        return rest;
    }

    /** Ends it as a crash would. */
    void kill() {
        process.destroyForcibly();
    }

    /** Sends it a signal by its name; in Turkish, the program {@code kill} knows no CONT. */
    void signal(String name) throws IOException, InterruptedException {
        String command = "kill -" + name + " " + process.pid();
        assertThat(new ProcessBuilder("/bin/sh", "-c", command).start().waitFor()).isZero();
    }

    int exitCode() throws InterruptedException {
        return process.waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
