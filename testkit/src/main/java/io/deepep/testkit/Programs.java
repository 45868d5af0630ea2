package io.deepep.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Assumptions;

/** Programs that tests start as processes. */
public final class Programs {
    /**
     * Options for a JVM that ends before C2's code would pay: a third of the processor time. The
     * Vector API is slow without C2, so leave its module out.
     */
    public static final List<String> SHORT_LIVED =
            List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC");

    private Programs() {}

    /** How one ended, and what it printed, also on standard error. */
    public record Ended(int status, String output) {
        /** What it printed, if it ended well. */
        public String requireSuccess() {
            assertThat(status).as(output).isZero();
            return output;
        }
    }

    /**
     * The program of this JVM, with which a command begins. JVMs that start together may find each
     * other's files of performance counters locked, and warn on standard output, so these have
     * none.
     */
    public static List<String> jvm() {
        return List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:-UsePerfData");
    }

    /**
     * How to start a program in a JVM of its own, with this one's class path.
     *
     * @param options for the JVM
     */
    public static ProcessBuilder java(Class<?> program, List<String> options, String... arguments) {
        List<String> command = new ArrayList<>(jvm());
        command.add("--enable-native-access=ALL-UNNAMED");
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }

    /** Runs a program to its end. */
    public static Ended run(String... command) throws IOException, InterruptedException {
        return run(new ProcessBuilder(command));
    }

    /** Runs a program to its end. */
    public static Ended run(ProcessBuilder program) throws IOException, InterruptedException {
        Process process = program.redirectErrorStream(true).start();
        try {
            process.getOutputStream().close();
            return awaitEnd(process);
        } finally {
            process.destroyForcibly();
        }
    }

    /**
     * Compiles a shared library from a resource in C; skips the test where there is no compiler.
     *
     * @param resource beside {@code owner}
     * @param folder for the source
     */
    public static void compile(Class<?> owner, String resource, Path folder, Path library) {
        Path source = folder.resolve(Path.of(resource).getFileName());
        try (InputStream in = owner.getResourceAsStream(resource)) {
            Files.write(source, Objects.requireNonNull(in, resource).readAllBytes());
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        List<String> command = new ArrayList<>();
        command.addAll(List.of("gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"));
        command.addAll(List.of("-o", library.toString(), source.toString(), "-lpthread"));
        try {
            run(new ProcessBuilder(command)).requireSuccess();
        } catch (IOException noCompiler) {
            Assumptions.abort(
                    "there is no gcc to build " + resource + ": " + noCompiler.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** Waits for the end of one whose streams are one. */
    public static Ended awaitEnd(Process process) throws IOException, InterruptedException {
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), output);
    }
}
