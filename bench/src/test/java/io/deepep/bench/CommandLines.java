package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.testkit.Programs;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** The command line of {@code deepep}: run here, without what it starts, or as a process. */
public final class CommandLines {
    private CommandLines() {}

    /** Runs {@code deepep} with these arguments, each as it prints. */
    public static Outcome run(Object... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        Console console =
                new Console(new PrintWriter(out, true), new PrintWriter(err, true), false);
        String[] words = Stream.of(arguments).map(Object::toString).toArray(String[]::new);
        int exitCode = Main.run(Main.commandLine(console), console, words);
        return new Outcome(exitCode, out.toString(), err.toString());
    }

    /** Runs {@code deepep} with arguments that spaces separate. */
    public static Outcome runLine(String arguments) {
        return run((Object[]) arguments.strip().split(" +"));
    }

    /** What {@code report} writes, complaints among the results. */
    public static String printed(Consumer<Console> report) {
        StringWriter out = new StringWriter();
        PrintWriter lines = new PrintWriter(out);
        report.accept(new Console(lines, lines, false));
        return out.toString();
    }

    /** A console of which nobody reads anything. */
    public static Console silent() {
        PrintWriter nowhere = new PrintWriter(Writer.nullWriter());
        return new Console(nowhere, nowhere, false);
    }

    /** Fails if {@code args} are not a command with options that it has. */
    public static void parse(String... args) {
        DeepEpCommand.create(silent()).parseArgs(args);
    }

    /**
     * How to start {@code deepep} in a JVM of its own, with this one's class path, and what it says
     * on standard error among its output.
     *
     * @param arguments that spaces separate
     * @param more that may have spaces
     */
    public static ProcessBuilder process(String arguments, String... more) {
        List<String> all = new ArrayList<>(List.of(arguments.split(" +")));
        all.addAll(List.of(more));
        return Programs.java(Main.class, Programs.SHORT_LIVED, all.toArray(String[]::new));
    }
}
