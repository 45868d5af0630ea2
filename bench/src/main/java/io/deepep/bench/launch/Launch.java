package io.deepep.bench.launch;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Runs a command once for each rank of this host. When one fails the others are ended, for they
 * would only wait for it; when this process ends, however it does, all end.
 */
public final class Launch {
    private static final Duration GRACE = Duration.ofSeconds(5);

    private static final int POLL_MILLIS = 10;

    /** What processes end with that a hang-up, Ctrl-C or a request ends: 128 and the signal. */
    private static final Set<Integer> ASKED_TO_END = Set.of(128 + 1, 128 + 2, 128 + 15);

    private static final int KILLED = 128 + 9;

    /** A terminal signals its processes in no order, within far less than this. */
    private static final int SIGNALS_SECONDS = 3;

    private final Console console;
    private final LaunchPlan plan;
    private final List<RankProcess> processes = new CopyOnWriteArrayList<>();
    private volatile boolean stopping;
    private volatile LaunchSecret secret; // of the current attempt; null if somebody gave one
    private final CountDownLatch ending = new CountDownLatch(1);

    private Launch(Console console, LaunchPlan plan) {
        this.console = console;
        this.plan = plan;
    }

    /**
     * Starts the processes and waits for all, again after a failure as often as the plan allows;
     * ends them too if this process is asked to end.
     *
     * @return 0, or the exit code of the first that failed in the last attempt
     * @throws UsageException if the command cannot be started
     */
    public static int run(Console console, LaunchPlan plan) {
        RankProcess.requireExecutable(plan.command().getFirst());
        Launch launch = new Launch(console, plan);
        // Ctrl-C and other signals end this process, which must then end its children.
        Runtime.getRuntime()
                .addShutdownHook(
                        Thread.ofPlatform()
                                .unstarted(
                                        () -> {
                                            launch.ending.countDown();
                                            Optional.ofNullable(launch.secret)
                                                    .ifPresent(LaunchSecret::close);
                                            launch.stop();
                                        }));
        try {
            return launch.attempts();
        } catch (InterruptedException interrupted) {
            launch.stop();
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while ranks were running", interrupted);
        }
    }

    private int attempts() throws InterruptedException {
        NumaBinding binding =
                plan.numaBinding()
                        ? NumaBinding.of(Path.of("/"), System.getenv(), plan.ranksPerNode())
                        : NumaBinding.none(plan.ranksPerNode());
        for (int attempt = 0; ; attempt++) {
            int exitCode = attempt(binding, attempt);
            if (exitCode == 0 || attempt == plan.maxRestarts() || isEnding()) {
                return exitCode;
            }
            console.complain(
                    "starting all ranks again, restart %s of at most %s"
                            .formatted(attempt + 1, plan.maxRestarts()));
        }
    }

    /**
     * Each has a secret of its own, since a system may have deleted a file that nobody has read for
     * days. Several hosts share one that somebody gave to all of them.
     */
    private int attempt(NumaBinding binding, int attempt) throws InterruptedException {
        try (LaunchSecret own = plan.meeting().isPresent() ? null : LaunchSecret.create()) {
            secret = own;
            start(
                    binding,
                    RankVariables.create(
                            plan, Optional.ofNullable(own).map(LaunchSecret::file), attempt),
                    RankOutput.of(console, plan, attempt));
            return await();
        }
    }

    private void start(NumaBinding binding, RankVariables variables, List<RankOutput> outputs) {
        stopping = isEnding();
        processes.clear();
        for (int localRank = 0; localRank < plan.ranksPerNode(); localRank++) {
            try {
                processes.add(
                        RankProcess.start(
                                localRank,
                                plan.command(),
                                binding,
                                variables,
                                outputs.get(localRank)));
            } catch (IOException failure) {
                stop();
                throw new UsageException(
                        "launch: cannot start %s: %s; if it is a limit, raise ulimit -n (files) or -u (processes)"
                                .formatted(plan.command().getFirst(), firstLine(failure)));
            }
        }
        if (isEnding()) { // while they were started
            stop();
        }
    }

    /** Java ends its message with a line break, and may add lines of guesses. */
    private static String firstLine(IOException failure) {
        return failure.getMessage().lines().findFirst().orElse("").strip();
    }

    private int await() throws InterruptedException {
        LinkedBlockingQueue<RankProcess> ended = new LinkedBlockingQueue<>();
        CompletableFuture<Void> allEnded =
                CompletableFuture.allOf(
                        processes.stream()
                                .map(process -> process.ended().thenAccept(ended::add))
                                .toArray(CompletableFuture[]::new));
        int first = 0;
        for (int i = 0; i < processes.size(); i++) {
            RankProcess process = ended.take();
            if (process.exitCode() != 0 && first == 0 && !stopping && !endsToo(process)) {
                first = process.exitCode();
                process.awaitOutput(afterGrace());
                console.complain(
                        "rank %s ended with exit code %s%s; ending the others"
                                .formatted(
                                        process.rank(),
                                        first,
                                        first == KILLED
                                                ? " (killed, as when memory runs out)"
                                                : ""));
                stop();
            }
        }
        allEnded.join();
        long deadline = afterGrace();
        for (RankProcess process : processes) {
            process.awaitOutput(deadline);
        }
        return first;
    }

    private boolean isEnding() {
        return ending.getCount() == 0;
    }

    /** Whether what ended a process ends this one too: no rank has failed then. */
    private boolean endsToo(RankProcess process) throws InterruptedException {
        return ASKED_TO_END.contains(process.exitCode())
                && ending.await(SIGNALS_SECONDS, TimeUnit.SECONDS);
    }

    /**
     * Asks all processes, and what they have started, to end, and after a while ends those that
     * have not: ranks that are started again must not meet them.
     */
    private synchronized void stop() {
        stopping = true;
        List<RankProcess> running = List.copyOf(processes);
        running.forEach(RankProcess::terminate);
        if (!awaitEnd(running)) {
            running.forEach(RankProcess::kill);
            awaitEnd(running);
        }
    }

    /** Waits a while for the end of processes; whether all have ended. */
    private static boolean awaitEnd(List<RankProcess> ending) {
        long deadline = afterGrace();
        while (ending.stream().anyMatch(RankProcess::isEnding)) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            try {
                Thread.sleep(POLL_MILLIS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
        return true;
    }

    private static long afterGrace() {
        return System.nanoTime() + GRACE.toNanos();
    }
}
