package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Virtual threads that wait for a GPU let others run. */
@Isolated("they would hold the carriers of other tests")
@Timeout(60)
class VirtualThreadsTest {
    @Test
    void interruptedOnesToo() throws InterruptedException {
        CountDownLatch othersRan = new CountDownLatch(1);
        List<Thread> waiting = new ArrayList<>();
        for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
            waiting.add(Thread.startVirtualThread(() -> waitInterrupted(othersRan)));
        }
        Thread.startVirtualThread(othersRan::countDown);
        for (Thread each : waiting) {
            each.join();
            assertThat(each.isInterrupted()).isTrue();
        }
    }

    private static void waitInterrupted(CountDownLatch end) {
        Thread.currentThread().interrupt();
        for (int pauses = 0; end.getCount() > 0; pauses++) {
            VirtualThreads.pause(pauses);
        }
    }
}
