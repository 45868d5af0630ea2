package io.deepep.bench;

import io.deepep.bench.run.Console;
import java.io.PrintWriter;
import java.io.Writer;
import picocli.CommandLine;

/** The command line of {@code deepep} without what it starts. */
public final class CommandLines {
    private CommandLines() {}

    /** Fails if {@code args} are not a command with options that it has. */
    public static void parse(String... args) {
        PrintWriter nowhere = new PrintWriter(Writer.nullWriter());
        CommandLine command = DeepEpCommand.create(new Console(nowhere, nowhere, false));
        command.parseArgs(args);
    }
}
