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
        add(top, new TestCommand.Intranode(console), ShapeDefaults.INTRANODE);
        add(top, new TestCommand.Internode(console), ShapeDefaults.INTERNODE);
        add(top, new TestCommand.LowLatency(console), ShapeDefaults.LOW_LATENCY);
        CommandLine bench = new CommandLine(new BenchCommand());
        add(bench, new BenchCommand.Normal(console), ShapeDefaults.BENCH_NORMAL);
        add(bench, new BenchCommand.LowLatency(console), ShapeDefaults.BENCH_LOW_LATENCY);
        add(bench, new BenchCommand.Decode(console), ShapeDefaults.BENCH_LOW_LATENCY);
        bench.addSubcommand(new BenchCommand.Put(console));
        top.addSubcommand(bench);
        top.addSubcommand(new ChaosCommand(console));
        top.addSubcommand(new ChaosCommand.Rank());
        top.addSubcommand(new DoctorCommand(console));
        top.addSubcommand(new PlanCommand(console));
        top.addSubcommand(ReportCommand.create(console));
        top.addSubcommand(new JmhCommand(console));
        // What follows the first word of the command is that command's.
        top.addSubcommand(new CommandLine(new LaunchCommand(console)).setStopAtPositional(true));
        configure(top, top);
        return top;
    }

    /**
     * Help shows options as they are declared. Constants are read in small letters, with hyphens,
     * wherever an option takes one.
     */
    private static void configure(CommandLine top, CommandLine command) {
        command.getCommandSpec().usageMessage().sortOptions(false);
        for (OptionSpec option : command.getCommandSpec().options()) {
            if (option.typeInfo().isEnum()) {
                register(top, option.auxiliaryTypes()[0]);
            }
        }
        command.getSubcommands().values().forEach(each -> configure(top, each));
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
    private static void add(CommandLine parent, Object command, ShapeDefaults defaults) {
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
        parent.addSubcommand(line);
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }
}
