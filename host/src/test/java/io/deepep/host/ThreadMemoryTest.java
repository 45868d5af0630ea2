package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Memory of ranks that are threads is freed once, also where they fail to meet. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ThreadMemoryTest {
    private static final int NUM_RANKS = 3;
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private final Queue<Integer> allocated = new ConcurrentLinkedQueue<>();
    private final Queue<Integer> freed = new ConcurrentLinkedQueue<>();

    /** A rank that is interrupted when the others have what it gives to an exchange. */
    private static final class Interrupted extends AroundCommunicator {
        Interrupted(Communicator inner) {
            super(inner);
        }

        @Override
        public List<Object> exchangeReferences(Object mine, Duration timeout) {
            inner.exchangeReferences(mine, timeout);
            throw new IllegalStateException("interrupted");
        }
    }

    private ThreadMemory<Integer> open(Communicator communicator) {
        int rank = communicator.rank();
        EpTopology topology = new EpTopology(rank, NUM_RANKS, NUM_RANKS);
        return ThreadMemory.open(
                new HeapRanks(communicator, topology, TIMEOUT),
                () -> {
                    allocated.add(rank);
                    return rank;
                },
                freed::add);
    }

    @Test
    void theLastRankFreesAll() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        ThreadMemory<Integer> memory = open(communicator);
                        assertThat(memory.of(2)).isEqualTo(2);
                        communicator.barrier(TIMEOUT);
                        assertThat(freed).isEmpty();
                        communicator.barrier(TIMEOUT);
                        memory.release();
                    });
        }
        assertThat(freed).containsExactly(0, 1, 2);
    }

    /** A rank that has failed holds nothing, and the others' memory does not wait for it. */
    @Test
    void aRankIsInterruptedInTheExchange() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            assertThatThrownBy(() -> open(new Interrupted(communicator)))
                                    .hasMessage("interrupted");
                            communicator.close();
                        } else {
                            assertThatThrownBy(() -> open(communicator))
                                    .isInstanceOf(DeepEpTimeoutException.class);
                        }
                    });
        }
        assertThat(allocated).containsExactlyInAnyOrder(0, 2);
        assertThat(freed).containsExactlyInAnyOrder(0, 2);
    }

    /** The others learn it at once, and all are in step. */
    @Test
    void aRankHasNoMemory() throws InterruptedException {
        OutOfMemoryError full = new OutOfMemoryError("full");
        try (InProcessGroup group = InProcessGroup.of(NUM_RANKS)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            EpTopology topology = new EpTopology(1, NUM_RANKS, NUM_RANKS);
                            HeapRanks ranks = new HeapRanks(communicator, topology, TIMEOUT);
                            assertThatThrownBy(
                                            () ->
                                                    ThreadMemory.open(
                                                            ranks, () -> fail(full), freed::add))
                                    .isSameAs(full);
                        } else {
                            assertThatThrownBy(() -> open(communicator))
                                    .isInstanceOf(DeepEpUnavailableException.class)
                                    .hasMessageStartingWith("rank 1 cannot allocate its buffer; ")
                                    .hasCause(full);
                        }
                        communicator.barrier(TIMEOUT);
                    });
        }
        assertThat(freed).containsExactlyInAnyOrder(0, 2);
    }

    private static Integer fail(Error error) {
        throw error;
    }
}
