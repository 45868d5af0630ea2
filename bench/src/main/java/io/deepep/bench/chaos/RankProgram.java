package io.deepep.bench.chaos;

import io.deepep.Communicator;
import io.deepep.bench.text.Lines;
import io.deepep.communicator.ProcessCommunicator;
import io.deepep.communicator.ProcessEnvironment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Supplier;

/**
 * A process that is a rank, or whose threads are all ranks: makes one run after another as it is
 * told on its input, each time in a new group, and says how it came out of it. Ends with its input.
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

    /**
     * What a process is told: one run, as one rank or as all of them. It keeps its seat, which says
     * where it works, from run to run.
     *
     * @param port where the ranks meet; 0 for a process that replaces the victim
     * @param nextPort where they meet when the victim has been replaced, 0 if it is not
     */
    record Order(Trial trial, int rank, int seat, int size, int port, int nextPort, String secret) {
        /** Instead of a rank: each is a thread. */
        static final int ALL = -1;

        private boolean joins() {
            return port == 0;
        }
    }

    /** What it answers: what the run left in use, and how its ranks came out of it. */
    record Answer(Usage usage, List<Outcome> outcomes) {}

    /** Does what standard input says until it ends. */
    public void follow() throws IOException {
        Signals.endWithParent();
        Signals signals = new Signals(out);
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println(READY);
        out.flush();
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Order order = Lines.read(line, Order.class);
            List<Outcome> outcomes =
                    order.rank() == Order.ALL
                            ? new ThreadRanks(run, order.size()).run(order.trial())
                            : List.of(runAlone(order, signals));
            Usage usage = Usage.ofThisProcess(run.placement().isCuda());
            out.println(OUTCOME + Lines.write(new Answer(usage, outcomes)));
            out.flush();
        }
    }

    private Outcome runAlone(Order order, Signals signals) {
        Supplier<Communicator> next = () -> open(order, order.nextPort());
        if (order.joins()) {
            return run.join(order.trial(), order.seat(), next);
        }
        return run.run(
                order.trial(),
                order.rank(),
                order.seat(),
                signals,
                order.port(),
                () -> open(order, order.port()),
                order.nextPort() == 0 ? null : next);
    }

    private Communicator open(Order order, int port) {
        return ProcessCommunicator.open(
                new ProcessEnvironment(
                        order.rank(),
                        order.size(),
                        order.rank(),
                        order.size(),
                        LOOPBACK,
                        port,
                        order.secret(),
                        ProcessEnvironment.DEFAULT_FAILURE_TIMEOUT),
                run.meetingTimeout());
    }
}
