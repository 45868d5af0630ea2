package io.deepep.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IpcMappingsTest {
    private static final byte[] HANDLE = {1, 2, 3};
    private static final byte[] OTHER = {1, 2, 4};
    private static final long CONTEXT = 70;
    private static final long OTHER_CONTEXT = 71;

    /** Maps everything to a new place, and does not care who asks how often. */
    private static final class Driver implements IpcMappings.Driver {
        final List<Long> mapped = new ArrayList<>();
        int numOpened;
        boolean refusing;

        @Override
        public long open(byte[] handle) {
            if (refusing) {
                throw new IllegalStateException("refused");
            }
            long base = 1000L * ++numOpened;
            mapped.add(base);
            return base;
        }

        @Override
        public void close(long base) {
            assertThat(mapped.remove(base)).isTrue();
            if (refusing) {
                throw new IllegalStateException("refused");
            }
        }
    }

    private final Driver driver = new Driver();
    private final IpcMappings mappings = new IpcMappings(driver);

    @Test
    void isMappedOnceUntilTheLastUserCloses() {
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(1000);
        assertThat(mappings.open(CONTEXT, HANDLE.clone())).isEqualTo(1000);
        mappings.close(CONTEXT, HANDLE.clone());
        assertThat(driver.mapped).containsExactly(1000L);
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(1000);
        mappings.close(CONTEXT, HANDLE);
        mappings.close(CONTEXT, HANDLE);
        assertThat(driver.mapped).isEmpty();
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(2000);
    }

    @Test
    void eachContextAndHandleHasItsOwn() {
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(1000);
        assertThat(mappings.open(OTHER_CONTEXT, HANDLE)).isEqualTo(2000);
        assertThat(mappings.open(CONTEXT, OTHER)).isEqualTo(3000);
        mappings.close(OTHER_CONTEXT, HANDLE);
        assertThat(driver.mapped).containsExactly(1000L, 3000L);
    }

    @Test
    void failuresDoNotStick() {
        driver.refusing = true;
        assertThatThrownBy(() -> mappings.open(CONTEXT, HANDLE)).hasMessage("refused");
        driver.refusing = false;
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(1000);
        driver.refusing = true;
        assertThatThrownBy(() -> mappings.close(CONTEXT, HANDLE)).hasMessage("refused");
        driver.refusing = false;
        assertThat(mappings.open(CONTEXT, HANDLE)).isEqualTo(2000);
    }

    @Test
    void threadsShareAMapping() throws InterruptedException, ExecutionException {
        int numThreads = 8;
        CountDownLatch together = new CountDownLatch(numThreads);
        try (ExecutorService threads = Executors.newFixedThreadPool(numThreads)) {
            List<Future<Long>> bases = new ArrayList<>();
            for (int thread = 0; thread < numThreads; thread++) {
                bases.add(
                        threads.submit(
                                () -> {
                                    together.countDown();
                                    together.await();
                                    return mappings.open(CONTEXT, HANDLE);
                                }));
            }
            for (Future<Long> base : bases) {
                assertThat(base.get()).isEqualTo(1000);
            }
        }
        assertThat(driver.numOpened).isEqualTo(1);
        for (int thread = 0; thread < numThreads; thread++) {
            assertThat(driver.mapped).containsExactly(1000L);
            mappings.close(CONTEXT, HANDLE);
        }
        assertThat(driver.mapped).isEmpty();
    }
}
