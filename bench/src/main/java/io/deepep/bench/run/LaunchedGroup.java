package io.deepep.bench.run;

import io.deepep.Communicator;
import io.deepep.communicator.ProcessCommunicator;
import io.deepep.communicator.ProcessEnvironment;
import io.deepep.error.DeepEpException;
import java.io.PrintWriter;
import java.io.Writer;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** The processes among which a launcher started this one, if any. */
public final class LaunchedGroup {
    private static final Duration START = Duration.ofMinutes(2);

    /** Two minutes become more than eight hours. */
    private static final int MOST_DOUBLINGS = 8;

    private final Communicator communicator;

    private LaunchedGroup(Communicator communicator) {
        this.communicator = communicator;
    }

    /**
     * Joins the others, does this process's part of {@code work} and leaves; collective. What it
     * throws is known to the others at once.
     *
     * @throws UsageException if the launcher's variables do not allow it, or the others do not come
     */
    public static <T> T run(Function<LaunchedGroup, T> work) {
        return run(START, work);
    }

    /** The same, where ranks wait so long for one another, if that is longer than usual. */
    public static <T> T run(Duration timeout, Function<LaunchedGroup, T> work) {
        return run(join(timeout.compareTo(START) > 0 ? timeout : START), work);
    }

    /** {@link #run(Function)} in a group that was joined, and is left. */
    static <T> T run(Communicator joined, Function<LaunchedGroup, T> work) {
        try (joined) {
            try {
                return work.apply(new LaunchedGroup(joined));
            } catch (Throwable failure) {
                if (joined != null) {
                    joined.fail(failure);
                }
                throw failure;
            }
        }
    }

    /**
     * How long to wait for the others at the start. A host where no rank failed may still wait in
     * the attempts before this one, one after the other, if one failed before all had met; so each
     * attempt waits longer than all before it together.
     */
    static Duration patience(Duration first, Map<String, String> variables) {
        String restarts = variables.getOrDefault("TORCHELASTIC_RESTART_COUNT", "");
        return restarts.matches("\\d{1,9}")
                ? first.multipliedBy(1L << Math.min(Integer.parseInt(restarts), MOST_DOUBLINGS))
                : first;
    }

    /** The group; null where this process is alone. */
    private static Communicator join(Duration first) {
        Duration start = patience(first, System.getenv());
        try {
            return environment().map(each -> ProcessCommunicator.open(each, start)).orElse(null);
        } catch (IllegalArgumentException | DeepEpException refused) {
            throw UsageException.of(refused);
        }
    }

    /** How many processes were started; empty where this one is alone. */
    public static Optional<Integer> size() {
        return environment().map(ProcessEnvironment::size);
    }

    /** How many of them are on this host; empty where this one is alone. */
    public static Optional<Integer> localSize() {
        return environment().map(ProcessEnvironment::localSize);
    }

    /** Whether all processes are on this host. */
    public static boolean isOneHost() {
        return localSize().equals(size());
    }

    /** Which of the processes this one is; empty where it is alone. */
    public static Optional<Integer> processRank() {
        return environment().map(ProcessEnvironment::rank);
    }

    /**
     * Complains where a launcher started this process among others, for a command that starts its
     * ranks itself.
     */
    public static void refuse(String command) {
        size().ifPresent(
                        processes -> {
                            throw new UsageException(
                                    ("%s starts its ranks itself, but %s processes were launched; start it without a"
                                                    + " launcher")
                                            .formatted(command, processes));
                        });
    }

    private static Optional<ProcessEnvironment> environment() {
        Map<String, String> variables = System.getenv();
        return UsageException.unlessRefused(
                () ->
                        ProcessEnvironment.isAmongOthers(variables)
                                ? Optional.of(ProcessEnvironment.from(variables))
                                        .filter(each -> each.size() > 1)
                                : Optional.empty());
    }

    /** The ranks of a job: threads of this process, unless there are others. */
    public RankSource ranks(int numRanks) {
        if (communicator == null) {
            return RankSource.inProcess(numRanks);
        }
        if (numRanks != communicator.size()) {
            throw new UsageException(
                    "%s ranks do not fit the %s processes that were launched, one rank each"
                            .formatted(numRanks, communicator.size()));
        }
        return new LaunchedRanks(communicator);
    }

    /**
     * The processes themselves, a rank each.
     *
     * @throws UsageException if they are not {@code numRanks}
     */
    public Communicator communicator(int numRanks) {
        if (communicator == null || communicator.size() != numRanks) {
            throw new UsageException(
                    "each of the %s ranks needs its own process; start them with deepep launch -n %s"
                            .formatted(numRanks, numRanks));
        }
        return communicator;
    }

    /** Whether this process is the one that writes results down. */
    public boolean writesResults() {
        return communicator == null || communicator.rank() == 0;
    }

    /** Where to write: only one process of a group writes results. */
    public Console console(Console own) {
        return writesResults()
                ? own
                : new Console(new PrintWriter(Writer.nullWriter()), own.err(), false);
    }
}
