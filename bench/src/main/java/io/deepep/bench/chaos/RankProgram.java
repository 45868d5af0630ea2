package io.deepep.bench.chaos;

import io.deepep.communicator.ProcessCommunicator;
import io.deepep.communicator.ProcessEnvironment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * A rank that is a process: makes one run after another as it is told on its input, each time in a
 * new group, and says how it came out of it. Ends with its input.
 */
public final class RankProgram {
    /** Said by a process that waits for its first order. */
    static final String READY = "ready";

    /** Said by a process that is about to stop. */
    static final String STOPPING = "stopping";

    /** Precedes an answer. */
    static final String OUTCOME = "outcome ";

    private static final String LOOPBACK = "127.0.0.1";

    private final RankRun run;
    private final PrintStream out;

    /** A rank placed and patient as {@code run} says; it speaks on {@code out}. */
    public RankProgram(RankRun run, PrintStream out) {
        this.run = run;
        this.out = out;
    }

    /** What a process is told: one run. */
    record Order(Trial trial, int rank, int size, int port, String secret) {}

    /** What it answers: what the run left in use, and how it came out. */
    record Answer(Usage usage, Outcome outcome) {}

    /** Does what standard input says until it ends. */
    public void follow() throws IOException {
        Signals signals = Signals.ofThisProcess(out);
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println(READY);
        out.flush();
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Order order = Lines.read(line, Order.class);
            Outcome outcome =
                    run.run(
                            order.trial(),
                            order.rank(),
                            signals,
                            () ->
                                    ProcessCommunicator.open(
                                            environment(order), run.meetingTimeout()));
            out.println(OUTCOME + Lines.write(new Answer(Usage.ofThisProcess(), outcome)));
            out.flush();
        }
    }

    private static ProcessEnvironment environment(Order order) {
        return new ProcessEnvironment(
                order.rank(),
                order.size(),
                order.rank(),
                order.size(),
                LOOPBACK,
                order.port(),
                order.secret(),
                ProcessEnvironment.DEFAULT_FAILURE_TIMEOUT);
    }
}
