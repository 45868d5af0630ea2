package io.deepep.bench.launch;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * Starts a command once for each rank, on this host, with the variables that the process
 * communicator reads.
 */
@Command(
        name = "launch",
        description =
                "Starts a command as N processes of one group: deepep launch -n 8 -- java -jar engine.jar",
        mixinStandardHelpOptions = true)
public final class LaunchCommand implements Callable<Integer> {
    private static final int SECRET_BYTES = 32;
    private static final String OTHER_LAUNCHERS =
            "(OMPI_COMM_WORLD|PMI|SLURM|TORCHELASTIC)_.*|DEEPEP_MASTER_PORT";

    private final Console console;

    @Option(
            names = {"-n", "--num-processes"},
            required = true,
            paramLabel = "N",
            description = "Number of processes.")
    private int numProcesses;

    @Option(
            names = "--master-port",
            paramLabel = "P",
            description = "Port where rank 0 listens; default: a free one.")
    private int masterPort;

    @Parameters(
            arity = "1..*",
            paramLabel = "COMMAND",
            description = "The command and its arguments, after --.")
    private List<String> command;

    /** Writes the processes' lines to {@code console}, each behind its rank. */
    public LaunchCommand(Console console) {
        this.console = console;
    }

    /** Returns 0, or the exit code of the process that failed first, after ending the others. */
    @Override
    public Integer call() throws IOException, InterruptedException {
        if (numProcesses < 1) {
            throw new UsageException("-n " + numProcesses + ": at least 1 process is needed");
        }
        if (masterPort < 0 || masterPort > 0xFFFF) {
            throw new UsageException("--master-port " + masterPort + " is not between 1 and 65535");
        }
        String port = Integer.toString(masterPort == 0 ? freePort() : masterPort);
        String secret = secret();
        List<Process> processes = new ArrayList<>();
        Thread killer = new Thread(() -> processes.forEach(LaunchCommand::kill));
        Runtime.getRuntime().addShutdownHook(killer);
        try {
            List<Thread> readers = new ArrayList<>();
            LinkedBlockingQueue<Process> ended = new LinkedBlockingQueue<>();
            for (int rank = 0; rank < numProcesses; rank++) {
                Process process = start(rank, port, secret);
                processes.add(process);
                readers.add(copy(process, rank));
                CompletableFuture<Process> unused =
                        process.onExit().whenComplete((gone, failure) -> ended.add(process));
            }
            int code = 0;
            for (int numEnded = 0; numEnded < numProcesses && code == 0; numEnded++) {
                code = ended.take().exitValue();
            }
            processes.forEach(LaunchCommand::kill);
            for (Thread reader : readers) {
                reader.join(2000);
            }
            return code;
        } finally {
            processes.forEach(LaunchCommand::kill);
            Runtime.getRuntime().removeShutdownHook(killer);
        }
    }

    private Process start(int rank, String port, String secret) {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        Map<String, String> variables = builder.environment();
        // Those of a launcher around this one would contradict.
        variables.keySet().removeIf(name -> name.matches(OTHER_LAUNCHERS));
        variables.put("RANK", Integer.toString(rank));
        variables.put("LOCAL_RANK", Integer.toString(rank));
        variables.put("WORLD_SIZE", Integer.toString(numProcesses));
        variables.put("MASTER_ADDR", "127.0.0.1");
        variables.put("MASTER_PORT", port);
        variables.put("DEEPEP_SECRET", secret);
        try {
            return builder.start();
        } catch (IOException failure) {
            throw new UsageException(
                    "cannot start " + command.getFirst() + ": " + failure.getMessage());
        }
    }

    private Thread copy(Process process, int rank) {
        return Thread.ofPlatform()
                .daemon()
                .name("deepep-output-" + rank)
                .start(
                        () -> {
                            PrintWriter out = console.out();
                            try (BufferedReader lines =
                                    process.inputReader(StandardCharsets.UTF_8)) {
                                lines.lines()
                                        .forEach(line -> out.println("[" + rank + "] " + line));
                            } catch (IOException | java.io.UncheckedIOException ended) {
                                out.println(
                                        "["
                                                + rank
                                                + "] (output ended: "
                                                + ended.getMessage()
                                                + ")");
                            }
                        });
    }

    private static void kill(Process process) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    private static String secret() {
        byte[] secret = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(secret);
        return HexFormat.of().formatHex(secret);
    }
}
