package io.deepep.bench;

import io.deepep.bench.run.Console;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;

/** The command line of {@code deepep}: without what it starts, or as a process. */
public final class CommandLines {
    private CommandLines() {}

    /** Fails if {@code args} are not a command with options that it has. */
    public static void parse(String... args) {
        PrintWriter nowhere = new PrintWriter(Writer.nullWriter());
        CommandLine command = DeepEpCommand.create(new Console(nowhere, nowhere, false));
        command.parseArgs(args);
    }

    /**
     * How to start {@code deepep} in a JVM of its own, with this one's class path, and what it says
     * on standard error among its output.
     *
     * @param option for the JVM
     */
    public static ProcessBuilder process(String option, String... args) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add(option);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        command.addAll(List.of(args));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }
}
