package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.OverwrittenOptionException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** The {@code deepep} command. */
public final class Main {
    /** Everything passed. */
    public static final int EXIT_PASSED = 0;

    /** A check failed. */
    public static final int EXIT_FAILED = 1;

    /** Wrong options, or options that do not go together. */
    public static final int EXIT_USAGE = 2;

    private Main() {}

    /** Runs the command and ends the process with its exit code. */
    public static void main(String[] args) {
        Logging.quiet();
        PrintWriter out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
        PrintWriter err = new PrintWriter(System.err, true, StandardCharsets.UTF_8);
        boolean dumb = isDumb(System.getenv("TERM"));
        Console console = new Console(out, err, !dumb && isTerminal(System.console()));
        CommandLine command = commandLine(console);
        if (dumb) {
            command.setColorScheme(Help.defaultColorScheme(Help.Ansi.OFF));
        }
        System.exit(run(command, console, args));
    }

    /** Whether it shows escape sequences instead of obeying them. */
    private static boolean isDumb(String terminal) {
        return terminal == null || terminal.equals("dumb");
    }

    // In 25, the default console is null again where there is no terminal.
    @SuppressWarnings("SystemConsoleNull")
    private static boolean isTerminal(java.io.Console console) {
        return console != null && console.isTerminal();
    }

    /** What {@link #run} runs, any number of times. */
    static CommandLine commandLine(Console console) {
        CommandLine command = DeepEpCommand.create(console);
        command.setOut(console.out());
        command.setErr(console.err());
        command.setParameterExceptionHandler(
                (wrong, ignored) -> complain(console, wrongUsage(wrong)));
        command.setExecutionExceptionHandler(
                (failure, ignored, parsed) -> explain(console, failure));
        return command;
    }

    /** Runs the command in this process and returns its exit code. */
    static int run(CommandLine command, Console console, String... args) {
        int code = execute(command, console, args);
        console.flush();
        if (code == EXIT_PASSED && console.out().checkError()) {
            return complain(console, "standard output could not be written to its end");
        }
        return code;
    }

    private static int execute(CommandLine command, Console console, String... args) {
        try {
            return command.execute(args);
        } catch (OutOfMemoryError full) {
            return outOfMemory(console, full);
        }
    }

    private static int outOfMemory(Console console, OutOfMemoryError full) {
        // A parallel stream throws it again without the message.
        Throwable first = full.getCause() == null ? full : full.getCause();
        String lacking = String.valueOf(first.getMessage());
        return complain(console, "out of memory (" + lacking + "); " + cure(lacking));
    }

    /** Java says so where the system has no more threads or memory, too. */
    static String cure(String lacking) {
        if (lacking.contains("native thread")) {
            return "raise the number of processes and threads that this user (ulimit -u) or container may have, or"
                    + " lower the number of ranks";
        }
        boolean offHeap = lacking.contains("off-heap") || lacking.contains("Unable to allocate");
        return "lower --num-tokens, --sms or the number of ranks, or raise "
                + (offHeap
                        ? "the memory that this user (ulimit -v) or container may have"
                        : "the heap by DEEPEP_JAVA_OPTS=-Xmx...");
    }

    /**
     * Says what is wrong with what the user asked for; anything else is a defect and shows its
     * trace.
     */
    private static int explain(Console console, Exception failure) throws Exception {
        if (failure instanceof UsageException || failure instanceof DeepEpUnavailableException) {
            return complain(console, failure.getMessage());
        }
        if (failure instanceof DeepEpTimeoutException) { // the process of a rank is gone
            complain(console, failure.getMessage());
            return EXIT_FAILED;
        }
        return switch (failure.getCause()) { // in the thread of a rank
            case OutOfMemoryError full -> outOfMemory(console, full);
            case DeepEpUnavailableException _ -> complain(console, failure.getMessage());
            case null, default -> throw failure;
        };
    }

    /** Says what is wrong with a command line, and whose help tells what would be right. */
    private static String wrongUsage(ParameterException wrong) {
        CommandLine command = wrong.getCommandLine();
        String name = command.getCommandSpec().qualifiedName();
        String message =
                asTyped(wrong, wrong.getMessage().lines().findFirst().orElse("wrong usage"));
        if (wrong instanceof UnmatchedArgumentException unmatched
                && !unmatched.isUnknownOption()
                && !command.getSubcommands().isEmpty()) {
            message = "there is no command " + name + " " + unmatched.getUnmatched().getFirst();
        }
        return message + "; see " + name + " --help";
    }

    /** The complaint with the name of the option that the user gave, of the several it may have. */
    private static String asTyped(ParameterException wrong, String message) {
        ArgSpec about =
                wrong instanceof OverwrittenOptionException twice
                        ? twice.getOverwritten()
                        : wrong.getArgSpec();
        if (!(about instanceof OptionSpec option)) {
            return message;
        }
        String quoted = "'" + option.longestName() + "'";
        for (String argument : wrong.getCommandLine().getParseResult().originalArgs()) {
            for (String name : option.names()) {
                if (argument.equals(name) || argument.startsWith(name + "=")) {
                    return message.replace(quoted, "'" + name + "'");
                }
            }
        }
        return message;
    }

    private static int complain(Console console, String message) {
        console.complain(message.lines().findFirst().orElse("failed"));
        console.flush();
        return EXIT_USAGE;
    }
}
