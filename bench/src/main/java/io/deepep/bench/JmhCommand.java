package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.cuda.CudaDriver;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/** Hands its arguments to JMH; {@code deepep jmh -h} shows JMH's own help. */
@Command(
        name = "jmh",
        description =
                "Runs the JMH benchmarks, all or those named, with JMH's own options:"
                        + " deepep jmh NormalHostBenchmark -f 1. Without a GPU those of CUDA are left out.")
final class JmhCommand implements Callable<Integer> {
    private final Console console;

    @Unmatched private List<String> arguments = new ArrayList<>();

    JmhCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() throws IOException {
        Optional<String> reason = CudaDriver.unavailabilityReason();
        if (reason.isPresent()) {
            console.err().println("without CudaCallBenchmark: " + reason.get());
            arguments.addAll(List.of("-e", "CudaCallBenchmark"));
        }
        org.openjdk.jmh.Main.main(arguments.toArray(String[]::new));
        return Main.EXIT_PASSED;
    }
}
