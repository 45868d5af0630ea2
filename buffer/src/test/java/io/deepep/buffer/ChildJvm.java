package io.deepep.buffer;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Programs of tests in a JVM of their own, with this one's class path. */
public final class ChildJvm {
    private ChildJvm() {}

    /**
     * How to start one, with what it says on standard error among its output.
     *
     * @param options for the JVM
     */
    public static ProcessBuilder of(Class<?> program, List<String> options, String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("--enable-native-access=ALL-UNNAMED");
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }
}
