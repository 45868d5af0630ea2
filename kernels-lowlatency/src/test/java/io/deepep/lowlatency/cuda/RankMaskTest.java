package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** What the host says of the ranks that kernels mask. */
@Isolated("observes the log")
class RankMaskTest {
    private static Handler listener(List<String> messages) {
        return new Handler() {
            @Override
            public void publish(LogRecord logged) {
                messages.add(logged.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
    }

    @Test
    void aRankThatAKernelMasksIsLoggedOnce() {
        List<String> warnings = new ArrayList<>();
        Handler handler = listener(warnings);
        Logger logger = Logger.getLogger(RankMask.class.getName());
        logger.addHandler(handler);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment masks = arena.allocate(ValueLayout.JAVA_INT, 4);
            RankMask mask = new RankMask(null, 1, 0, masks, 0);
            mask.warn();
            assertThat(warnings).isEmpty();
            masks.setAtIndex(ValueLayout.JAVA_INT, 2, 1); // as a kernel does
            mask.warn();
            mask.warn();
            assertThat(warnings)
                    .containsExactly(
                            "rank 1 masks rank 2: it did not come to a low-latency call in time");
        } finally {
            logger.removeHandler(handler);
        }
    }
}
