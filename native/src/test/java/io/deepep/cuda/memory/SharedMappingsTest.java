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
class SharedMappingsTest {
    private static final String KEY = "key";
    private static final String OTHER = "other";

    /** Of a driver that maps everything to a new place, and does not care who asks how often. */
    private final List<Long> mapped = new ArrayList<>();

    private int numMapped;
    private int numPrepared;
    private boolean refusing;
    private boolean hiding;
    private final SharedMappings<String, Long> mappings = new SharedMappings<>(this::unmap);

    private long map() {
        requireNot(refusing);
        long base = 1000L * ++numMapped;
        mapped.add(base);
        return base;
    }

    private void unmap(long base) {
        assertThat(mapped.remove(base)).isTrue();
        requireNot(refusing);
    }

    private static void requireNot(boolean refusing) {
        if (refusing) {
            throw new IllegalStateException("refused");
        }
    }

    /** Who waits for the lock afterwards may find another context current than was prepared. */
    private void prepare() {
        assertThat(Thread.holdsLock(mappings)).isTrue();
        numPrepared++;
    }

    private long open(String key) {
        return mappings.open(
                this::prepare,
                key,
                this::map,
                base -> {
                    requireNot(hiding);
                    return base + 1;
                });
    }

    private void close(String key) {
        mappings.close(this::prepare, key);
    }

    @Test
    void isMappedOnceUntilTheLastUserCloses() {
        assertThat(open(KEY)).isEqualTo(1001);
        assertThat(open(KEY)).isEqualTo(1001);
        close(KEY);
        assertThat(mapped).containsExactly(1000L);
        assertThat(open(KEY)).isEqualTo(1001);
        close(KEY);
        close(KEY);
        assertThat(mapped).isEmpty();
        assertThat(numPrepared).isEqualTo(6);
        assertThat(open(KEY)).isEqualTo(2001);
    }

    @Test
    void eachKeyHasItsOwn() {
        assertThat(open(KEY)).isEqualTo(1001);
        assertThat(open(OTHER)).isEqualTo(2001);
        close(KEY);
        assertThat(mapped).containsExactly(2000L);
    }

    @Test
    void failuresDoNotStick() {
        refusing = true;
        assertThatThrownBy(() -> open(KEY)).hasMessage("refused");
        refusing = false;
        assertThat(open(KEY)).isEqualTo(1001);
        refusing = true;
        assertThatThrownBy(() -> close(KEY)).hasMessage("refused");
        refusing = false;
        assertThat(open(KEY)).isEqualTo(2001);
    }

    /** Whoever has it keeps it. */
    @Test
    void whatAUserDoesNotFindIsGivenBack() {
        open(OTHER);
        hiding = true;
        assertThatThrownBy(() -> open(KEY)).hasMessage("refused");
        assertThatThrownBy(() -> open(OTHER)).hasMessage("refused");
        assertThat(mapped).containsExactly(1000L);
        close(OTHER);
        assertThat(mapped).isEmpty();
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
                                    return open(KEY);
                                }));
            }
            for (Future<Long> base : bases) {
                assertThat(base.get()).isEqualTo(1001);
            }
        }
        assertThat(numMapped).isEqualTo(1);
        for (int thread = 0; thread < numThreads; thread++) {
            assertThat(mapped).containsExactly(1000L);
            close(KEY);
        }
        assertThat(mapped).isEmpty();
    }
}
