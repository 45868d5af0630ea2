package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.spi.LoopbackPorts;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestBackends;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/**
 * The card of one rank has a fault in the middle of calls, with a process for each rank. If it
 * spoils the calls, every rank names another within its time-out, and ends by itself; if it only
 * takes time, all results are right. {@code -Ddeepep.faults=60} has so many, from the one that
 * {@code -Ddeepep.firstFault} numbers, ten of twelve of the first kind; {@code
 * -Ddeepep.faultsAtOnce} groups at a time.
 */
class NetworkFaultsTest extends CardCases {
    /** Errors of an entry, of its queue pair, and of the port. */
    private static final List<String> SPOILING =
            List.of(
                    "fail %s retry-exceeded",
                    "fail %s remote-access",
                    "wrong-key %s",
                    "fail %s local-protection",
                    "fail %s remote-operation",
                    "port-down %s 20000",
                    "fail %s remote-request",
                    "fail %s local-operation",
                    "fail %s local-length",
                    "fail %s receiver-not-ready");

    private static final List<String> HARMLESS =
            List.of("stall %s 300", "port-down %s 300", "delay 300", "hold 300", "bandwidth 50");

    private static final int SPOILING_OF = 12;

    /** Entries of a rank before its fault, at most: those of one or two of its twenty rounds. */
    private static final int MAX_ENTRIES = 60;

    private static final int END_SECONDS = 60;

    private record Fault(int number, String text, int rank, boolean spoils) {
        static Fault of(int number) {
            RandomGenerator random = new java.util.SplittableRandom(number);
            boolean spoils = number % SPOILING_OF < SPOILING.size();
            List<String> kinds = spoils ? SPOILING : HARMLESS;
            int kind = spoils ? number % SPOILING_OF : number / SPOILING_OF;
            return new Fault(
                    number,
                    kinds.get(kind % kinds.size()).formatted(random.nextInt(MAX_ENTRIES)),
                    random.nextInt(NetworkFaultProgram.NUM_RANKS),
                    spoils);
        }
    }

    /** The network that a run asks for; our own where it does not say. */
    private static TestBackend backend() {
        List<TestBackend> usable = TestBackends.load().usable();
        return usable.contains(BufferTestBackends.CUDA_IBGDA)
                ? BufferTestBackends.CUDA_IBGDA
                : BufferTestBackends.CUDA_NVSHMEM;
    }

    @Test
    void isToldOnEveryRank() throws Exception {
        TestBackend backend = backend();
        Assumptions.assumeTrue(TestBackends.load().usable().contains(backend), "no such backend");
        int number = Integer.getInteger("deepep.faults", 3);
        int first = Integer.getInteger("deepep.firstFault", 0);
        List<String> broken = new ArrayList<>();
        try (ExecutorService groups =
                Executors.newFixedThreadPool(Integer.getInteger("deepep.faultsAtOnce", 1))) {
            List<Future<String>> outcomes =
                    IntStream.range(first, first + number)
                            .mapToObj(i -> groups.submit(() -> outcome(backend, Fault.of(i))))
                            .toList();
            for (Future<String> outcome : outcomes) {
                if (!outcome.get().isEmpty()) {
                    broken.add(outcome.get());
                }
            }
        }
        assertThat(broken).as("of %s faults", number).isEmpty();
    }

    /** What is wrong with how the ranks took a fault; empty if nothing is. */
    private String outcome(TestBackend backend, Fault fault) throws Exception {
        List<List<String>> said = said(backend, fault);
        List<String> ends = said.stream().map(NetworkFaultsTest::end).toList();
        boolean right =
                fault.spoils
                        ? isNamed(fault, ends)
                        : ends.stream().allMatch(NetworkFaultProgram.WENT_ON::equals);
        System.out.println(fault + ": " + ends);
        return right ? "" : "%s: %s".formatted(fault, said);
    }

    /** Each rank names another, and another than the faulty one names that. */
    private static boolean isNamed(Fault fault, List<String> ends) {
        for (int rank = 0; rank < ends.size(); rank++) {
            if (!ends.get(rank).startsWith(NetworkFaultProgram.TIMED_OUT)
                    || ends.get(rank).endsWith(" " + rank)) {
                return false;
            }
        }
        return ends.contains(NetworkFaultProgram.TIMED_OUT + fault.rank);
    }

    /** The line that says how a rank ended. */
    private static String end(List<String> lines) {
        return lines.stream()
                .filter(
                        line ->
                                line.equals(NetworkFaultProgram.WENT_ON)
                                        || line.startsWith(NetworkFaultProgram.TIMED_OUT))
                .findFirst()
                .orElse("nothing said");
    }

    /** What each rank printed. Its card and those of its group have a folder of their own. */
    private List<List<String>> said(TestBackend backend, Fault fault) throws Exception {
        Path own = Files.createTempDirectory(card.path(), "fault-" + fault.number + "-");
        int port = LoopbackPorts.free();
        List<Process> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < NetworkFaultProgram.NUM_RANKS; rank++) {
                ProcessBuilder builder =
                        new RankJvm(rank, NetworkFaultProgram.NUM_RANKS, port)
                                .of(
                                        NetworkFaultProgram.class,
                                        backend.name(),
                                        fault.text,
                                        Integer.toString(fault.rank));
                builder.environment().putAll(Map.of("DEEPEP_CARD_FOLDER", own.toString()));
                ranks.add(builder.redirectOutput(output(own, rank).toFile()).start());
            }
            for (Process rank : ranks) {
                if (!rank.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                    return List.of(List.of("rank " + ranks.indexOf(rank) + " did not end"));
                }
            }
        } finally {
            ranks.forEach(Process::destroyForcibly);
        }
        return IntStream.range(0, ranks.size()).mapToObj(rank -> lines(own, rank)).toList();
    }

    private static Path output(Path folder, int rank) {
        return folder.resolve("rank-" + rank);
    }

    private static List<String> lines(Path folder, int rank) {
        try {
            return Files.readAllLines(output(folder, rank));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
