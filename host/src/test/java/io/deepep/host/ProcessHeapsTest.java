package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Heaps in shared memory, as between processes; here the ranks are threads all the same. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ProcessHeapsTest {
    private static final Duration LONG = Duration.ofSeconds(30);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG;

    @BeforeAll
    static void requireLinux() {
        assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "this system has no /proc");
    }

    /** A rank that cannot exchange references, and what it makes of the messages it gets. */
    private static final class Apart extends AroundCommunicator {
        private final UnaryOperator<String> ear;

        Apart(Communicator inner, UnaryOperator<String> ear) {
            super(inner);
            this.ear = ear;
        }

        @Override
        public List<byte[]> allGather(byte[] message, Duration timeout) {
            return inner.allGather(message, timeout).stream()
                    .map(bytes -> ear.apply(new String(bytes, StandardCharsets.UTF_8)))
                    .map(text -> text.getBytes(StandardCharsets.UTF_8))
                    .toList();
        }
    }

    private static HostHeaps open(Communicator communicator, EpTopology topology) {
        return HostHeaps.open(
                new HeapRanks(new Apart(communicator, UnaryOperator.identity()), topology, LONG),
                4096,
                5000);
    }

    @Test
    void whatIsWrittenAtAnOffsetOfAPeerIsReadThereByThePeer() throws InterruptedException {
        int numRanks = 4;
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        EpTopology topology = new EpTopology(rank, numRanks, 2);
                        try (HostHeaps heaps = open(communicator, topology)) {
                            assertThat(heaps.nvl().local().byteSize()).isEqualTo(4096);
                            assertThat(heaps.rdma().local().byteSize()).isEqualTo(5000);
                            assertThat(heaps.rdma().local().address() % 128).isZero();
                            for (int peer = 0; peer < numRanks; peer++) {
                                heaps.rdma().of(peer).set(I64, 8L * rank, 100L * rank + peer);
                            }
                            heaps.nvl().of(rank ^ 1).set(I64, 64, -rank - 1L);
                            assertThatThrownBy(() -> heaps.nvl().of((rank + 2) % numRanks))
                                    .hasMessageContaining("no direct path");
                            communicator.barrier(LONG);
                            for (int peer = 0; peer < numRanks; peer++) {
                                assertThat(heaps.rdma().local().get(I64, 8L * peer))
                                        .isEqualTo(100L * peer + rank);
                            }
                            assertThat(heaps.nvl().local().get(I64, 64))
                                    .isEqualTo(-(rank ^ 1) - 1L);
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    @Test
    void ranksCloseInAnyOrder() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        HostHeaps heaps = open(communicator, new EpTopology(rank, 3, 3));
                        MemorySegment mine = heaps.nvl().local();
                        for (int closing = 0; closing < 3; closing++) {
                            if (rank == closing) {
                                heaps.close();
                                heaps.close();
                                assertThatThrownBy(() -> mine.get(I64, 0))
                                        .isInstanceOf(IllegalStateException.class);
                            }
                            communicator.barrier(LONG);
                            if (rank > closing) {
                                heaps.nvl().signal(closing, 8L * rank, 7);
                                heaps.nvl().signal(rank, 8L * rank, closing);
                                assertThat(heaps.nvl().flag(8L * rank)).isEqualTo(closing);
                            }
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    /** A new rank's memory lies where the dead one's was, for segments that were taken before. */
    @Test
    void memoryOfANewRankTakesThePlaceOfTheOld() throws InterruptedException, IOException {
        int numRanks = 3;
        int dead = 1;
        BitSet newRanks = BitSet.valueOf(new long[] {1L << dead});
        long before = numMappings();
        try (InProcessGroup group = InProcessGroup.of(numRanks);
                InProcessGroup next = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        EpTopology topology = new EpTopology(rank, numRanks, numRanks);
                        Communicator again =
                                new Apart(next.communicator(rank), UnaryOperator.identity());
                        HeapRanks ranks = new HeapRanks(again, topology, newRanks, LONG);
                        HostHeaps heaps = open(communicator, topology);
                        MemorySegment seen = heaps.rdma().window(8, 64).of(dead);
                        communicator.barrier(LONG);
                        heaps.nvl().of(dead).set(I64, 8L * rank, 99);
                        seen.set(I64, 8L * rank, 99);
                        communicator.barrier(LONG);
                        if (rank == dead) {
                            heaps.close();
                            heaps = HostHeaps.open(ranks, 4096, 5000);
                            assertThat(heaps.nvl().local().get(I64, 0)).isZero();
                            heaps.rdma().local().set(I64, 8, 5);
                        } else {
                            heaps.admit(ranks);
                        }
                        again.barrier(LONG);
                        if (rank != dead) {
                            assertThat(seen.get(I64, 0)).isEqualTo(5);
                            seen.set(I64, 8L * rank + 8, rank + 1);
                        }
                        again.barrier(LONG);
                        if (rank == dead) {
                            assertThat(heaps.rdma().local().get(I64, 16)).isEqualTo(1);
                            assertThat(heaps.rdma().local().get(I64, 32)).isEqualTo(3);
                        }
                        heaps.close();
                    });
        }
        assertThat(numMappings()).isEqualTo(before);
        assertThat(descriptors()).noneMatch(n -> n.contains("memfd:deepep-"));
    }

    private static long numMappings() throws IOException {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains("/memfd:deepep")).count();
        }
    }

    @Test
    void payloadIsVisibleOnceItsFlagIs() throws InterruptedException {
        int rounds = 2000;
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        int peer = 1 - rank;
                        try (HostHeaps heaps = open(communicator, new EpTopology(rank, 2, 2))) {
                            HostWait wait = new HostWait(rank, heaps.doorbell(), LONG.toNanos());
                            for (long round = 1; round <= rounds; round++) {
                                heaps.nvl().of(peer).set(I64, 128, round * 31);
                                heaps.nvl().signal(peer, 0, round);
                                TestFlags.await(wait, heaps.nvl(), 0, round, peer, "stress.data");
                                assertThat(heaps.nvl().local().get(I64, 128)).isEqualTo(round * 31);
                                heaps.nvl().signal(peer, 8, round);
                                TestFlags.await(wait, heaps.nvl(), 8, round, peer, "stress.credit");
                            }
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    /**
     * A killed rank leaves nothing either: there is never a name, and no descriptor but of a rank's
     * own memory, for ranks that come later.
     */
    @Test
    void memoryHasNoNameAndOneDescriptorOnceItIsShared() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        EpTopology topology = new EpTopology(communicator.rank(), 2, 2);
                        try (HostHeaps heaps = open(communicator, topology)) {
                            communicator.barrier(LONG);
                            assertThat(names("/dev/shm")).noneMatch(n -> n.contains("deepep-"));
                            assertThat(descriptors())
                                    .filteredOn(n -> n.contains("memfd:deepep-"))
                                    .hasSize(2)
                                    .doesNotHaveDuplicates();
                            assertThat(heaps.nvl().local().byteSize()).isEqualTo(4096);
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    private static List<String> names(String folder) throws IOException {
        try (Stream<Path> paths = Files.list(Path.of(folder))) {
            return paths.map(path -> path.getFileName().toString()).toList();
        }
    }

    private static List<String> descriptors() throws IOException {
        List<String> targets = new ArrayList<>();
        for (String fd : names("/proc/self/fd")) {
            try {
                targets.add(Files.readSymbolicLink(Path.of("/proc/self/fd", fd)).toString());
            } catch (IOException closed) {
                // By another thread, as the one of the folder itself.
            }
        }
        return targets;
    }

    /**
     * A rank in another PID namespace, where the others' numbers mean nothing or something else.
     */
    @Test
    void ifOneRankCannotAllLearnIt() throws InterruptedException {
        String pid = Long.toString(ProcessHandle.current().pid());
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        UnaryOperator<String> ear =
                                rank == 1
                                        ? word ->
                                                word.replace(
                                                        pid + " ", "0".repeat(pid.length()) + " ")
                                        : UnaryOperator.identity();
                        requireRefused(
                                new Apart(communicator, ear),
                                100,
                                "rank 1: /proc/0/fd/",
                                "NoSuchFileException",
                                "in one PID namespace");
                    });
        }
    }

    /** Said before anybody looks for memory, which is that of others there. */
    @Test
    void ranksOfDifferentHostsLearnThatTheyAre() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator -> {
                        AtomicInteger heard = new AtomicInteger();
                        UnaryOperator<String> ear =
                                word ->
                                        heard.getAndIncrement() == 1
                                                ? word.replace("pid:[", "pid:(")
                                                : word;
                        requireRefused(
                                new Apart(communicator, ear),
                                1L << 50,
                                "rank 1 is on another host than rank 0",
                                "run all ranks on one host");
                    });
        }
    }

    /** Found before anybody takes memory, with what is there and what all would need. */
    @Test
    void moreThanThereIsIsRefusedWithTheNumbers() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator ->
                            requireRefused(
                                    new Apart(communicator, UnaryOperator.identity()),
                                    communicator.rank() == 2 ? 1L << 50 : 100,
                                    "rank 2: the buffers of 3 ranks on this host need "
                                            + 3 * ((1L << 50) + 100)
                                            + " bytes of memory, but only ",
                                    " are available",
                                    "lower the limits of the buffer"));
        }
    }

    /** A rank that opens fewer bytes than it says cannot make its peers run past the end. */
    @Test
    void ranksOfDifferentSizesAllLearnIt() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator ->
                            requireRefused(
                                    new Apart(communicator, UnaryOperator.identity()),
                                    communicator.rank() == 0 ? 8192 : 100,
                                    "bytes instead of"));
        }
    }

    private static void requireRefused(
            Communicator communicator, long nvlBytes, String... mentions) {
        EpTopology topology =
                new EpTopology(communicator.rank(), communicator.size(), communicator.size());
        assertThatThrownBy(
                        () ->
                                HostHeaps.open(
                                        new HeapRanks(communicator, topology, LONG), nvlBytes, 100))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("the processes cannot share host memory: ")
                .hasMessageContainingAll(mentions);
    }
}
