package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.spi.HeapRanks;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HeapLeaseTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    /** As of a rank whose thread ended without closing its buffer. */
    @Test
    void memoryOfARankThatForgetsToCloseIsReleased() throws InterruptedException {
        Queue<MemorySegment> memories = new ConcurrentLinkedQueue<>();
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
                        memories.add(heaps.nvl().local());
                        if (rank != 1) {
                            heaps.close();
                        }
                    });
        }
        assertThat(memories).hasSize(3);
        awaitReleased(memories);
    }

    /** A handle or a request keeps its heap, not what opened it. */
    @Test
    void aWindowOfAHeapKeepsItsMemory() throws InterruptedException {
        Queue<MemorySegment> memories = new ConcurrentLinkedQueue<>();
        AtomicReference<HostHeap> window = new AtomicReference<>();
        try (InProcessGroup group = InProcessGroup.of(1)) {
            group.run(
                    communicator -> {
                        HostHeaps heaps =
                                HostHeaps.open(
                                        new HeapRanks(communicator, new EpTopology(0, 1, 1), LONG),
                                        128,
                                        128);
                        memories.add(heaps.nvl().local());
                        window.set(heaps.nvl().window(0, 64));
                    });
        }
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(10);
        }
        window.get().signal(0, 0, 7);
        assertThat(window.getAndSet(null).flag(0)).isEqualTo(7);
        awaitReleased(memories);
    }

    private static void awaitReleased(Queue<MemorySegment> memories) throws InterruptedException {
        while (memories.stream().anyMatch(memory -> memory.scope().isAlive())) {
            System.gc();
            Thread.sleep(10);
        }
    }
}
