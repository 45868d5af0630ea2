package io.deepep.bench.chaos;

import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Lines;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The process of a {@link RankProgram}, as seen by who gives its orders. */
final class ChaosProcess implements AutoCloseable {
    private static final String ENDED = "ended";

    /** Whether to show what the processes print: who sets this wants to see it. */
    private static final boolean SHOWS = System.getenv("NVSHMEM_DEBUG") != null;

    /** A Java starts within so many minutes on the busiest machine. */
    private static final int START_MINUTES = 2;

    private final CompletableFuture<Void> ready = new CompletableFuture<>();

    private final Process process;
    private final int seat;
    private final PrintWriter orders;
    private final BlockingQueue<String> outcomes = new LinkedBlockingQueue<>();
    private volatile Duration pause = Duration.ZERO;

    /** Tells the run that was ordered last from the others: the port of its group. */
    private volatile int told;

    private Usage first;
    private Usage last;
    private boolean hung;

    private ChaosProcess(Process process, int seat) {
        this.process = process;
        this.seat = seat;
        this.orders = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
        Thread.ofPlatform().daemon().start(this::read);
    }

    /**
     * Starts one.
     *
     * @throws UsageException if it cannot be started
     */
    static ChaosProcess start(List<String> command, int seat) {
        try {
            return new ChaosProcess(
                    new ProcessBuilder(command)
                            .redirectError(
                                    SHOWS
                                            ? ProcessBuilder.Redirect.INHERIT
                                            : ProcessBuilder.Redirect.DISCARD)
                            .start(),
                    seat);
        } catch (IOException failure) {
            throw new UsageException(
                    "chaos: cannot start " + command.getFirst() + ": " + failure.getMessage());
        }
    }

    /**
     * Waits until it waits for orders: a group must not wait for its Java.
     *
     * @throws UsageException if it ends before
     */
    void awaitReady() {
        try {
            ready.orTimeout(START_MINUTES, TimeUnit.MINUTES).join();
        } catch (CompletionException notStarted) {
            throw new UsageException(
                    "chaos: a rank's process does not start: " + notStarted.getCause());
        }
    }

    private void read() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals(RankProgram.READY)) {
                    ready.complete(null);
                } else if (line.equals(RankProgram.STOPPING)) {
                    Thread.ofPlatform().daemon().start(this::goOn);
                } else if (line.startsWith(RankProgram.OUTCOME)) {
                    outcomes.add(line.substring(RankProgram.OUTCOME.length()));
                } else if (SHOWS) {
                    System.err.println(line);
                }
            }
        } catch (IOException ended) {
            // As when the line is null.
        }
        ready.completeExceptionally(new IOException("it ended before it received its task"));
        outcomes.add(ENDED);
    }

    /** Continues the stopped process after its pause; again if it stopped later than it said. */
    private void goOn() {
        int run = told;
        try {
            while (run == told && process.isAlive()) {
                Thread.sleep(pause);
                Signals.goOn(process.pid());
            }
        } catch (InterruptedException failure) {
            throw new IllegalStateException("a stopped rank could not be continued", failure);
        }
    }

    /** Where it works. */
    int seat() {
        return seat;
    }

    /**
     * Orders a run, in which the process stays stopped for {@code ifStopped} if it stops. Without a
     * port, it takes the place of {@code rank}.
     */
    void tell(
            Trial trial,
            int rank,
            int numRanks,
            int port,
            int nextPort,
            String secret,
            Duration ifStopped) {
        pause = ifStopped;
        told = port;
        orders.println(
                Lines.write(
                        new RankProgram.Order(
                                trial, rank, seat, numRanks, port, nextPort, secret)));
    }

    /**
     * How the process came out of the run that it was told to make.
     *
     * @return an outcome for each of its ranks
     */
    List<Outcome> await(long deadline, int numRanks) {
        try {
            String said =
                    outcomes.poll(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
            if (said == null) {
                hung = true;
                return Collections.nCopies(numRanks, Outcome.HUNG);
            }
            if (said.equals(ENDED)) {
                process.waitFor();
                return Collections.nCopies(numRanks, Outcome.DEAD);
            }
            RankProgram.Answer answer = Lines.read(said, RankProgram.Answer.class);
            last = answer.usage();
            first = first == null ? last : first;
            hung = answer.outcomes().contains(Outcome.HUNG);
            return answer.outcomes();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while ranks were running", interrupted);
        }
    }

    /** Whether it can make no more runs. One that hangs is ended. */
    boolean isGone() {
        if (hung) {
            close();
        }
        return hung || !process.isAlive();
    }

    /** The next run counts as its first. */
    void forgetUsage() {
        first = null;
    }

    /** What it holds more now than after its first run. */
    Usage leftOver() {
        return first == null ? Usage.NOTHING : last.since(first);
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
