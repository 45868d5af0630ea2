package io.deepep.bench;

import io.deepep.bench.plan.PlanCommand;
import io.deepep.bench.report.ReportCommand;
import io.deepep.bench.run.Console;
import io.deepep.bench.text.Names;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
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
        top.addSubcommand(new TestCommand.Intranode(console));
        top.addSubcommand(new TestCommand.Internode(console));
        top.addSubcommand(new TestCommand.LowLatency(console));
        top.addSubcommand(
                new CommandLine(new BenchCommand())
                        .addSubcommand(new BenchCommand.Normal(console))
                        .addSubcommand(new BenchCommand.LowLatency(console))
                        .addSubcommand(new BenchCommand.Decode(console))
                        .addSubcommand(new BenchCommand.Put(console)));
        top.addSubcommand(new ChaosCommand(console));
        top.addSubcommand(new ChaosCommand.Rank());
        top.addSubcommand(new DoctorCommand(console));
        top.addSubcommand(new PlanCommand(console));
        top.addSubcommand(ReportCommand.create(console));
        top.addSubcommand(new JmhCommand(console));
        // What follows the first word of the command is that command's.
        top.addSubcommand(new CommandLine(new LaunchCommand(console)).setStopAtPositional(true));
        configure(top, top);
        // @FILE is an argument of the command that launch starts, such as Java.
        top.setExpandAtFiles(false);
        return top;
    }

    /**
     * Help shows options as they are declared, and names the defaults of a command's own. Constants
     * are read in small letters, with hyphens, wherever an option takes one.
     */
    private static void configure(CommandLine top, CommandLine command) {
        command.getCommandSpec().usageMessage().sortOptions(false);
        for (CommandSpec mixin : command.getCommandSpec().mixins().values()) {
            if (mixin.userObject() instanceof JobOptions job) {
                command.getCommandSpec().usageMessage().footer("", job.footer());
            }
        }
        for (OptionSpec option : command.getCommandSpec().options()) {
            if (option.typeInfo().isEnum()) {
                register(top, option.auxiliaryTypes()[0]);
            }
        }
        command.getSubcommands().values().forEach(each -> configure(top, each));
    }

    private static <T> void register(CommandLine top, Class<T> type) {
        Map<String, T> constants = new LinkedHashMap<>();
        for (T each : type.getEnumConstants()) {
            constants.put(Names.of((Enum<?>) each), each);
        }
        top.registerConverter(
                type,
                text -> {
                    T constant = constants.get(text.toLowerCase(Locale.ROOT));
                    if (constant == null) {
                        throw new TypeConversionException(
                                "'%s' is not one of %s".formatted(text, constants.keySet()));
                    }
                    return constant;
                });
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }
}
