package io.deepep.bench;

import io.deepep.bench.run.Console;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The top of the command line: every subcommand is built here, with the console it writes to. */
@Command(
        name = "deepep",
        description = "Tests and measures expert-parallel dispatch and combine. Every result is checked.",
        mixinStandardHelpOptions = true,
        versionProvider = BuildVersion.class,
        synopsisSubcommandLabel = "COMMAND",
        footer = {"", "Exit codes: 0 all passed, 1 a check failed, 2 wrong options or an impossible combination."})
final class DeepEpCommand implements Runnable {
    private final Console console;

    @Spec
    private CommandSpec spec;

    DeepEpCommand(Console console) {
        this.console = console;
    }

    @Command(
            name = "test-intranode",
            description = "Normal mode on one node: every variant of dispatch and combine, checked, then timed.",
            mixinStandardHelpOptions = true)
    int testIntranode(
            @picocli.CommandLine.Mixin IntranodeGroup group,
            @picocli.CommandLine.Mixin NormalShape shape,
            @picocli.CommandLine.Mixin CommonOptions common) {
        return NormalCommands.test(console, shape.job(group, common, NormalShape.INTRANODE_TOKENS));
    }

    @Command(
            name = "test-internode",
            description = "Normal mode on several nodes: every variant of dispatch and combine, checked, then timed.",
            mixinStandardHelpOptions = true)
    int testInternode(
            @picocli.CommandLine.Mixin InternodeGroup group,
            @picocli.CommandLine.Mixin NormalShape shape,
            @picocli.CommandLine.Mixin CommonOptions common) {
        return NormalCommands.test(console, shape.job(group, common, NormalShape.INTERNODE_TOKENS));
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given; see deepep --help");
    }
}
