package io.deepep.bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/** Hands its arguments to JMH; {@code deepep jmh -h} shows JMH's own help. */
@Command(
        name = "jmh",
        description =
                "Runs the JMH benchmarks, with JMH's own options: deepep jmh NormalHostBenchmark -f 1")
final class JmhCommand implements Callable<Integer> {
    @Unmatched private List<String> arguments = new ArrayList<>();

    @Override
    public Integer call() throws IOException {
        org.openjdk.jmh.Main.main(arguments.toArray(String[]::new));
        return Main.EXIT_PASSED;
    }
}
