package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.bench.run.Console;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Every option of every command, as the command line itself lists them, with what it cannot be: one
 * line on standard error, nothing on standard output, exit code 2.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BadOptionsTest {
    private static final List<String> NO_NUMBERS = List.of("x", "", "1x", "99999999999999999999");
    private static final List<String> LIMITS =
            List.of("-1", "0", "2147483647", "-2147483648", "-2147483647");
    private static final List<String> NOT_FINITE = List.of("NaN", "Infinity", "-1", "1e300");

    /** What of these a number may be, though. */
    private static final Map<String, Set<String>> ALLOWED =
            Map.of(
                    "--seed", Set.copyOf(LIMITS),
                    "--warmups", Set.of("0"),
                    "--from", Set.of("0"),
                    "--nvlink-gbs", Set.of("0"),
                    "--gpus", Set.of("2147483647"));

    /** Starts processes, which is not for here; hands all of its arguments on. */
    private static final Set<String> LEFT_OUT = Set.of("launch", "jmh");

    /** One for all: to read the options of all commands takes longer than to refuse one. */
    private static final StringWriter OUT = new StringWriter();

    private static final StringWriter ERR = new StringWriter();
    private static final Console CONSOLE =
            new Console(new PrintWriter(OUT, true), new PrintWriter(ERR, true), false);
    private static final CommandLine COMMAND = Main.commandLine(CONSOLE);

    static Stream<List<String>> commandLines() {
        return commandLines(COMMAND, List.of());
    }

    private static Stream<List<String>> commandLines(CommandLine command, List<String> path) {
        Stream<List<String>> own =
                command.getCommandSpec().options().stream()
                        .filter(option -> !option.usageHelp() && !option.versionHelp())
                        .flatMap(BadOptionsTest::arguments)
                        .map(argument -> with(path, argument));
        Stream<List<String>> below =
                command.getSubcommands().entrySet().stream()
                        .filter(each -> !LEFT_OUT.contains(each.getKey()))
                        .flatMap(each -> commandLines(each.getValue(), with(path, each.getKey())));
        return Stream.concat(own, below);
    }

    private static List<String> with(List<String> path, String last) {
        List<String> longer = new ArrayList<>(path);
        longer.add(last);
        return longer;
    }

    private static Stream<String> arguments(OptionSpec option) {
        return Stream.of(option.names())
                .flatMap(
                        name ->
                                values(option)
                                        .filter(
                                                value ->
                                                        !ALLOWED.getOrDefault(name, Set.of())
                                                                .contains(value))
                                        .map(value -> name + "=" + value));
    }

    private static Stream<String> values(OptionSpec option) {
        Class<?> type =
                option.typeInfo().isMultiValue()
                        ? option.auxiliaryTypes()[0]
                        : option.typeInfo().getType();
        if (type == int.class || type == Integer.class || type == long.class) {
            return Stream.concat(NO_NUMBERS.stream(), LIMITS.stream());
        }
        if (type == double.class) {
            return Stream.concat(NO_NUMBERS.stream().limit(3), NOT_FINITE.stream());
        }
        if (type == Path.class) {
            return Stream.of("", ".", "/no/such/folder/file", "/dev/null/file", "x".repeat(300));
        }
        return type == boolean.class ? Stream.of("maybe") : Stream.of("no such", "=", ",");
    }

    @ParameterizedTest
    @MethodSource("commandLines")
    void endsInOneLine(List<String> commandLine) {
        OUT.getBuffer().setLength(0);
        ERR.getBuffer().setLength(0);
        int exitCode = Main.run(COMMAND, CONSOLE, commandLine.toArray(String[]::new));
        Outcome outcome = new Outcome(exitCode, OUT.toString(), ERR.toString());
        outcome.requireRefused("deepep: ");
        assertThat(outcome.err()).doesNotContain("Exception", "Error", "overflow");
        assertThat(outcome.out()).isEmpty();
    }
}
