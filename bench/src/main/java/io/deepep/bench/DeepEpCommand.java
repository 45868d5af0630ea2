package io.deepep.bench;

import io.deepep.bench.plan.PlanCommand;
import io.deepep.bench.report.ReportCommand;
import io.deepep.bench.run.Console;
import io.deepep.bench.text.Names;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** The top of the command line. */
@Command(
        name = "deepep",
        description =
                "Tests and measures expert-parallel dispatch and combine. Every result is checked.",
        mixinStandardHelpOptions = true,
        versionProvider = VersionText.class,
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "deepep COMMAND --help shows a command's options.",
            "Exit codes: 0 if all passed, 1 if a check failed, 2 for wrong options or an impossible combination."
        })
final class DeepEpCommand implements Runnable {
    @Spec private CommandSpec spec;

    private DeepEpCommand() {}

    /** The command line with all its commands, which write to {@code console}. */
    static CommandLine create(Console console) {
        CommandLine top = new CommandLine(new DeepEpCommand());
        add(top, "test-intranode", new TestCommand.Intranode(console), ShapeDefaults.INTRANODE);
        add(top, "test-internode", new TestCommand.Internode(console), ShapeDefaults.INTERNODE);
        add(
                top,
                "test-low-latency",
                new TestCommand.LowLatency(console),
                ShapeDefaults.LOW_LATENCY);
        CommandLine bench = new CommandLine(new BenchCommand());
        add(bench, "normal", new BenchCommand.Normal(console), ShapeDefaults.BENCH_NORMAL);
        add(
                bench,
                "low-latency",
                new BenchCommand.LowLatency(console),
                ShapeDefaults.BENCH_LOW_LATENCY);
        add(bench, "decode", new BenchCommand.Decode(console), ShapeDefaults.BENCH_LOW_LATENCY);
        bench.addSubcommand("put", new BenchCommand.Put(console));
        top.addSubcommand("bench", bench);
        top.addSubcommand("chaos", new ChaosCommand(console));
        top.addSubcommand("chaos-rank", new ChaosCommand.Rank());
        top.addSubcommand("doctor", new DoctorCommand(console));
        top.addSubcommand("plan", PlanCommand.create(console));
        top.addSubcommand("report", ReportCommand.create(console));
        top.addSubcommand("jmh", new JmhCommand(console));
        // What follows the first word of the command is that command's.
        top.addSubcommand(
                "launch", new CommandLine(new LaunchCommand(console)).setStopAtPositional(true));
        readConstantsAsWritten(top, top);
        return top;
    }

    /** In small letters, with hyphens, wherever an option takes a constant. */
    private static void readConstantsAsWritten(CommandLine top, CommandLine command) {
        for (OptionSpec option : command.getCommandSpec().options()) {
            if (option.typeInfo().isEnum()) {
                register(top, option.auxiliaryTypes()[0]);
            }
        }
        command.getSubcommands().values().forEach(each -> readConstantsAsWritten(top, each));
    }

    private static <T> void register(CommandLine top, Class<T> type) {
        List<T> constants = List.of(type.getEnumConstants());
        top.registerConverter(
                type,
                text ->
                        constants.stream()
                                .filter(each -> name(each).equalsIgnoreCase(text))
                                .findFirst()
                                .orElseThrow(() -> noneOf(constants, text)));
    }

    private static String name(Object constant) {
        return Names.of((Enum<?>) constant);
    }

    private static TypeConversionException noneOf(List<?> constants, String text) {
        return new TypeConversionException(
                "'%s' is not one of %s"
                        .formatted(text, constants.stream().map(each -> name(each)).toList()));
    }

    /** Adds a command with defaults of its own, which its help names. */
    private static void add(
            CommandLine parent, String name, Object command, ShapeDefaults defaults) {
        CommandLine line = new CommandLine(command);
        line.setDefaultValueProvider(
                argument ->
                        argument instanceof OptionSpec option
                                        && option.longestName().equals("--num-experts")
                                ? Integer.toString(defaults.numExperts())
                                : null);
        line.getCommandSpec()
                .usageMessage()
                .footer(
                        "",
                        "Tokens per rank without --num-tokens and --routing: "
                                + defaults.tokensText()
                                + ".");
        parent.addSubcommand(name, line);
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }
}
