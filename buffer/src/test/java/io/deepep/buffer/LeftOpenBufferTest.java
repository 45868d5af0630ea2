package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.InProcessGroup;
import io.deepep.host.HostStream;
import io.deepep.testkit.LogMessages;
import java.lang.foreign.MemorySegment;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Ranks of a group of threads that end without closing their buffers. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Isolated("it hears what all buffers log")
class LeftOpenBufferTest {
    private static Buffer open(Communicator communicator) {
        return SmallExchange.builder(communicator).open();
    }

    private static MemorySegment memory(Buffer buffer) {
        return buffer.getLocalBufferTensor(DType.I64, 1, 0, false).segment();
    }

    @Test
    void areClosedWithTheGroupWhichNamesThem() throws InterruptedException {
        Queue<Buffer> kept = new ConcurrentLinkedQueue<>();
        Queue<MemorySegment> memories = new ConcurrentLinkedQueue<>();
        LogMessages log = new LogMessages(RankBuffer.class);
        try (log;
                InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        Buffer buffer = open(communicator);
                        memories.add(memory(buffer));
                        if (communicator.rank() == 0) {
                            buffer.close();
                        } else {
                            kept.add(buffer);
                        }
                    });
            assertThat(memories).allMatch(memory -> memory.scope().isAlive());
        }
        assertThat(memories).noneMatch(memory -> memory.scope().isAlive());
        assertThat(log.messages())
                .containsExactly(
                        "rank 1 left its buffer open when its group closed; it is closed now");
        assertThatThrownBy(() -> memory(kept.element())).hasMessageContaining("closed");
    }

    /** Whoever is in the middle of a call must not lose the memory under it. */
    @Test
    void ofARankThatStillRunsStayOpen() throws Exception {
        CountDownLatch opened = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        InProcessGroup group = InProcessGroup.of(1);
        FutureTask<Boolean> rank =
                new FutureTask<>(
                        () -> {
                            try (Buffer buffer = open(group.communicator(0))) {
                                opened.countDown();
                                closed.await();
                                return memory(buffer).scope().isAlive();
                            }
                        });
        Thread.ofPlatform().daemon().start(rank);
        opened.await();
        group.close();
        closed.countDown();
        assertThat(rank.get()).isTrue();
    }

    @Test
    void areReleasedWhenNobodyReachesThem() throws InterruptedException {
        Queue<MemorySegment> memories = new ConcurrentLinkedQueue<>();
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(communicator -> memories.add(memory(open(communicator))));
            while (memories.stream().anyMatch(memory -> memory.scope().isAlive())) {
                System.gc();
                Thread.sleep(10);
            }
        }
        assertThat(memories).hasSize(2);
    }

    /** The thread of asynchronous calls goes as the memory does. */
    @Test
    void endTheirThreadsWhenNobodyReachesThem() throws InterruptedException {
        Queue<Thread> threads = new ConcurrentLinkedQueue<>();
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator ->
                            ((HostStream) open(communicator).communicationStream())
                                    .submit(() -> threads.add(Thread.currentThread()))
                                    .synchronize());
            assertThat(threads).hasSize(2);
            for (int i = 0; i < 1000 && threads.stream().anyMatch(Thread::isAlive); i++) {
                System.gc();
                Thread.sleep(10);
            }
        }
        assertThat(threads).noneMatch(Thread::isAlive);
    }
}
