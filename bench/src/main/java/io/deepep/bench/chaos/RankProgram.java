package io.deepep.bench.chaos;

import io.deepep.communicator.ProcessCommunicator;
import io.deepep.communicator.ProcessEnvironment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * A rank that is a process: makes one run after another as it is told on its input, each time in a
 * new group, and says how it came out of it. Ends with its input.
 */
public final class RankProgram {
    /** Said by a process that waits for its first order. */
    static final String READY = "ready";

    /** Said by a process that is about to stop. */
    static final String STOPPING = "stopping";

    /** Precedes what a run left in use, and its outcome. */
    static final String OUTCOME = "outcome ";

    private static final int TRIAL_WORDS = 8;
    private static final String LOOPBACK = "127.0.0.1";

    private final RankRun run;
    private final PrintStream out;

    /** A rank placed and patient as {@code run} says; it speaks on {@code out}. */
    public RankProgram(RankRun run, PrintStream out) {
        this.run = run;
        this.out = out;
    }

    /** What a process is told: one run. */
    record Order(Trial trial, int rank, int size, int port, String secret) {
        String encode() {
            return String.join(
                    " ",
                    trial.encode(),
                    Integer.toString(rank),
                    Integer.toString(size),
                    Integer.toString(port),
                    secret);
        }

        static Order decode(String line) {
            List<String> words = List.of(line.split(" "));
            List<String> rest = words.subList(TRIAL_WORDS, words.size());
            return new Order(
                    Trial.decode(words.subList(0, TRIAL_WORDS)),
                    Integer.parseInt(rest.get(0)),
                    Integer.parseInt(rest.get(1)),
                    Integer.parseInt(rest.get(2)),
                    rest.get(3));
        }
    }

    /** Does what standard input says until it ends. */
    public void follow() throws IOException {
        Signals signals = Signals.ofThisProcess(out);
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println(READY);
        out.flush();
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Order order = Order.decode(line);
            Outcome outcome =
                    run.run(
                            order.trial(),
                            order.rank(),
                            signals,
                            () ->
                                    ProcessCommunicator.open(
                                            environment(order), run.meetingTimeout()));
            out.println(OUTCOME + Usage.ofThisProcess().encode() + " " + outcome.encode());
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
