package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.spi.HeapRanks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Heaps of several ranks, and the flags in them. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostHeapTest {
    private static final Duration LONG = Duration.ofSeconds(30);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG;

    @Test
    void whatIsWrittenAtAnOffsetOfAPeerIsReadThereByThePeer() throws InterruptedException {
        int numRanks = 4;
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        try (HostHeaps heaps =
                                HostHeaps.open(
                                        new HeapRanks(
                                                communicator,
                                                new EpTopology(rank, numRanks, 2),
                                                LONG),
                                        1000,
                                        2000)) {
                            assertThat(heaps.nvl().local().byteSize()).isEqualTo(1000);
                            assertThat(heaps.rdma().local().byteSize()).isEqualTo(2000);
                            assertThat(heaps.nvl().local().address() % 128).isZero();
                            for (int peer = 0; peer < numRanks; peer++) {
                                heaps.rdma().of(peer).set(I64, 8L * rank, 100L * rank + peer);
                                if (peer / 2 == rank / 2) {
                                    heaps.nvl()
                                            .window(64, 64)
                                            .of(peer)
                                            .set(I64, 8L * rank, -100L * rank - peer);
                                }
                            }
                            communicator.barrier(LONG);
                            for (int peer = 0; peer < numRanks; peer++) {
                                assertThat(heaps.rdma().local().get(I64, 8L * peer))
                                        .isEqualTo(100L * peer + rank);
                                long expected = peer / 2 == rank / 2 ? -100L * peer - rank : 0;
                                assertThat(heaps.nvl().local().get(I64, 64 + 8L * peer))
                                        .isEqualTo(expected);
                            }
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    @Test
    void nvlMemoryOfAnotherNodeIsOutOfReach() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        int stranger = (rank + 2) % 4;
                        try (HostHeaps heaps =
                                HostHeaps.open(
                                        new HeapRanks(
                                                communicator, new EpTopology(rank, 4, 2), LONG),
                                        256,
                                        256)) {
                            String message =
                                    "rank "
                                            + rank
                                            + " has no direct path to the memory of rank "
                                            + stranger;
                            assertThatThrownBy(() -> heaps.nvl().of(stranger))
                                    .isInstanceOf(IllegalStateException.class)
                                    .hasMessage(message);
                            assertThatThrownBy(
                                            () -> heaps.nvl().window(0, 128).signal(stranger, 0, 1))
                                    .isInstanceOf(IllegalStateException.class);
                            assertThat(heaps.rdma().of(stranger).byteSize()).isEqualTo(256);
                            communicator.barrier(LONG);
                        }
                    });
        }
    }

    @Test
    void memoryLivesUntilTheLastRankCloses() throws InterruptedException {
        for (int last = 0; last < 3; last++) {
            int lastRank = last;
            CyclicBarrier others = new CyclicBarrier(3);
            try (InProcessGroup group = InProcessGroup.of(3)) {
                group.run(
                        communicator -> {
                            int rank = communicator.rank();
                            HostHeaps heaps =
                                    HostHeaps.open(
                                            new HeapRanks(
                                                    communicator, new EpTopology(rank, 3, 3), LONG),
                                            128,
                                            128);
                            MemorySegment mine = heaps.nvl().local();
                            if (rank != lastRank) {
                                heaps.close();
                                heaps.close();
                            }
                            others.await();
                            // Memory of ranks that have closed is still there for one that has not.
                            heaps.nvl().signal(lastRank, 8L * rank, 7);
                            assertThat(mine.get(I64, 120)).isZero();
                            others.await();
                            if (rank == lastRank) {
                                assertThat(heaps.nvl().flag(8L * rank)).isEqualTo(7);
                                heaps.close();
                            }
                            others.await();
                            assertThatThrownBy(() -> mine.get(I64, 0))
                                    .isInstanceOf(IllegalStateException.class);
                            assertThatThrownBy(() -> heaps.rdma().flag(0))
                                    .isInstanceOf(IllegalStateException.class);
                            assertThatThrownBy(() -> heaps.nvl().signal(lastRank, 0, 1))
                                    .isInstanceOf(IllegalStateException.class);
                        });
            }
        }
    }

    @Test
    void windowsAreBounded() {
        try (Arena arena = Arena.ofConfined()) {
            HostHeap heap = TestFlags.single(arena, 256);
            HostHeap window = heap.window(128, 64);
            window.signal(0, 56, 5);
            assertThat(heap.flag(184)).isEqualTo(5);
            assertThatThrownBy(() -> window.flag(64)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> heap.window(128, 129))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> heap.signal(0, 4, 1))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void payloadIsVisibleOnceItsFlagIs() throws InterruptedException {
        int rounds = 100_000;
        int words = 16;
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        int peer = 1 - rank;
                        try (HostHeaps heaps =
                                HostHeaps.open(
                                        new HeapRanks(
                                                communicator, new EpTopology(rank, 2, 2), LONG),
                                        4096,
                                        8)) {
                            HostWait wait = new HostWait(rank, heaps.doorbell(), LONG.toNanos());
                            MemorySegment out = heaps.nvl().of(peer);
                            MemorySegment in = heaps.nvl().local();
                            for (long round = 1; round <= rounds; round++) {
                                for (int word = 0; word < words; word++) {
                                    out.set(I64, 128 + 128L * word, round * 31 + word);
                                }
                                heaps.nvl().signal(peer, 0, round);
                                TestFlags.await(wait, heaps.nvl(), 0, round, peer, "stress.data");
                                for (int word = 0; word < words; word++) {
                                    long seen = in.get(I64, 128 + 128L * word);
                                    if (seen != round * 31 + word) {
                                        throw new AssertionError(
                                                "round " + round + " word " + word + " is " + seen);
                                    }
                                }
                                // Credit: the peer may only overwrite what has been read.
                                heaps.nvl().signal(peer, 8, round);
                                TestFlags.await(wait, heaps.nvl(), 8, round, peer, "stress.credit");
                            }
                            communicator.barrier(LONG);
                        }
                    });
        }
    }
}
