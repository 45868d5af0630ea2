package io.deepep.testkit.conformance;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.RankFailedException;
import io.deepep.spi.CommunicatorProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs the suites with ranks in several processes: a launcher such as {@code deepep launch} starts
 * the same tests in all of them, with {@code -Ddeepep.ranksPerProcess=1}, or more to have several
 * threads in each. Cases of another size than that are left out. The processes go through the tests
 * in step, so only the first failure means something.
 */
final class ProcessRanks {
    /** The system property. */
    static final String PROPERTY = "deepep.ranksPerProcess";

    private static final Duration START = Duration.ofMinutes(2);

    private ProcessRanks() {}

    /** The group is joined once and serves all tests. */
    private static final class Holder {
        static final Communicator[] OWN = join(Integer.getInteger(PROPERTY));
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
        return Holder.OWN[0].size();
    }

    /** A new group of the same ranks, which meets at another port: collective. */
    static Communicator regroup(Communicator old) {
        byte[] mine = new byte[0];
        if (old.rank() == 0) {
            try (ServerSocket free = new ServerSocket(0)) {
                mine = Integer.toString(free.getLocalPort()).getBytes(StandardCharsets.US_ASCII);
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
        byte[] port = old.allGather(mine, START).getFirst();
        int perProcess = Integer.getInteger(PROPERTY);
        Map<String, String> variables = variables(perProcess, old.rank() % perProcess);
        variables.put("DEEPEP_MASTER_PORT", new String(port, StandardCharsets.US_ASCII));
        return CommunicatorProvider.load().open(variables, START);
    }

    /** Runs {@code body} on this process's ranks while the other processes do the same. */
    static void run(EpTopology topology, InProcessGroup.RankTask body) throws InterruptedException {
        Communicator[] own = Holder.OWN;
        onThreads(own.length, thread -> body.run(own[thread]));
    }

    private static Communicator[] join(int perProcess) {
        Communicator[] own = new Communicator[perProcess];
        try {
            onThreads(
                    perProcess,
                    thread ->
                            own[thread] =
                                    CommunicatorProvider.load()
                                            .open(variables(perProcess, thread), START));
            return own;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while joining the group", interrupted);
        }
    }

    /** Those of the process, with ranks and sizes for its threads. */
    private static Map<String, String> variables(int perProcess, int thread) {
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

    @FunctionalInterface
    private interface Act {
        void run(int thread) throws Exception;
    }

    private static void onThreads(int number, Act act) throws InterruptedException {
        try (InProcessGroup threads = InProcessGroup.of(number)) {
            threads.run(thread -> act.run(thread.rank()));
        } catch (RankFailedException failed) {
            throw new AssertionError(
                    "thread " + failed.rank() + " of this process: " + failed.getCause(), failed);
        }
    }
}
