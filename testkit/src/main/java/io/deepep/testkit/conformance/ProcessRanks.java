package io.deepep.testkit.conformance;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.RankFailedException;
import io.deepep.spi.CommunicatorProvider;
import io.deepep.spi.LoopbackPorts;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the suites with ranks in several processes: a launcher such as {@code deepep launch} starts
 * the same tests in all of them, with {@code -Ddeepep.ranksPerProcess=1}, or more to have several
 * threads in each. Cases of another size than that are left out. The processes go through the tests
 * in step. After a case, they tell each other how it went. If it failed anywhere, it fails
 * everywhere, and they meet again in a new group, as they may have left the old one at different
 * places.
 */
public final class ProcessRanks {
    /** The system property. */
    static final String PROPERTY = "deepep.ranksPerProcess";

    private static final String MASTER_PORT = "DEEPEP_MASTER_PORT";

    private static final Duration START = Duration.ofMinutes(2);

    private static final String WELL = "well";

    private ProcessRanks() {}

    /** Of this process, in the group that serves all tests until one fails. */
    private static Communicator[] own;

    private static int numGroups;

    private static synchronized Communicator[] own() {
        if (own == null) {
            own = join(Integer.getInteger(PROPERTY), 0);
        }
        return own;
    }

    static boolean areRequested() {
        return Integer.getInteger(PROPERTY) != null;
    }

    /** Whether each rank has a process of its own. */
    static boolean areOnePerProcess() {
        return Integer.valueOf(1).equals(Integer.getInteger(PROPERTY));
    }

    /** How many there are, in all processes. */
    static int number() {
        return own()[0].size();
    }

    /** A new group of the same ranks, which meets at another port: collective. */
    static Communicator regroup(Communicator old) {
        String mine = old.rank() == 0 ? Integer.toString(LoopbackPorts.free()) : "";
        byte[] port = old.allGather(mine.getBytes(StandardCharsets.US_ASCII), START).getFirst();
        int perProcess = Integer.getInteger(PROPERTY);
        Map<String, String> variables = variables(perProcess, old.rank() % perProcess);
        variables.put(MASTER_PORT, new String(port, StandardCharsets.US_ASCII));
        return CommunicatorProvider.load().open(variables, START);
    }

    /**
     * Runs {@code body} on this process's ranks while the other processes do the same.
     *
     * @throws AssertionError if it failed here or in another process
     */
    static void run(InProcessGroup.RankTask body) throws InterruptedException {
        Communicator[] ranks = own();
        AssertionError failure = null;
        try {
            onThreads(ranks.length, thread -> body.run(ranks[thread.rank()]));
        } catch (AssertionError failed) {
            failure = failed;
        }
        try {
            String outcome = failure == null ? WELL : failure.getMessage();
            onThreads(ranks.length, thread -> requireAllWell(ranks[thread.rank()], outcome));
        } catch (AssertionError elsewhere) {
            meetAgain();
            throw failure == null ? elsewhere : failure;
        }
    }

    private static void requireAllWell(Communicator communicator, String outcome) {
        List<byte[]> outcomes =
                communicator.allGather(outcome.getBytes(StandardCharsets.UTF_8), START);
        for (int rank = 0; rank < outcomes.size(); rank++) {
            String other = new String(outcomes.get(rank), StandardCharsets.UTF_8);
            if (!other.equals(WELL)) {
                throw new AssertionError("rank " + rank + " failed: " + other);
            }
        }
    }

    private static synchronized void meetAgain() {
        for (Communicator communicator : own) {
            communicator.close();
        }
        own = join(own.length, ++numGroups);
    }

    /** Joins a group, whose rank 0 listens so many ports above that of the first. */
    private static Communicator[] join(int perProcess, int port) {
        Communicator[] joined = new Communicator[perProcess];
        try {
            onThreads(
                    perProcess,
                    thread -> {
                        Map<String, String> variables = variables(perProcess, thread.rank());
                        if (port > 0) {
                            String first =
                                    variables.getOrDefault(
                                            MASTER_PORT, variables.get("MASTER_PORT"));
                            variables.put(
                                    MASTER_PORT, Integer.toString(Integer.parseInt(first) + port));
                        }
                        joined[thread.rank()] = CommunicatorProvider.load().open(variables, START);
                    });
            return joined;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while joining the group", interrupted);
        }
    }

    /** Those of the process, with ranks and sizes for its threads. */
    public static Map<String, String> variables(int perProcess, int thread) {
        Map<String, String> variables = new HashMap<>(System.getenv());
        variables.computeIfPresent("RANK", (name, rank) -> times(rank, perProcess, thread));
        variables.computeIfPresent("LOCAL_RANK", (name, rank) -> times(rank, perProcess, thread));
        variables.computeIfPresent("WORLD_SIZE", (name, size) -> times(size, perProcess, 0));
        variables.computeIfPresent("LOCAL_WORLD_SIZE", (name, size) -> times(size, perProcess, 0));
        return variables;
    }

    private static String times(String number, int perProcess, int thread) {
        return Integer.toString(Integer.parseInt(number) * perProcess + thread);
    }

    private static void onThreads(int number, InProcessGroup.RankTask act)
            throws InterruptedException {
        try (InProcessGroup threads = InProcessGroup.of(number)) {
            threads.run(act);
        } catch (RankFailedException failed) {
            throw new AssertionError(
                    "thread " + failed.rank() + " of this process: " + failed.getCause(), failed);
        }
    }
}
