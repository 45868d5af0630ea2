package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.testkit.LogMessages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** What the host says of the ranks that kernels mask. */
@Isolated("observes the log")
class RankMaskTest {
    @Test
    void aRankThatAKernelMasksIsLoggedOnce() {
        try (LogMessages log = new LogMessages(RankMask.class);
                Arena arena = Arena.ofConfined()) {
            MemorySegment masks = arena.allocate(ValueLayout.JAVA_INT, 4);
            RankMask mask = new RankMask(null, 1, 0, masks, 0);
            mask.warn();
            assertThat(log.messages()).isEmpty();
            masks.setAtIndex(ValueLayout.JAVA_INT, 2, 1); // as a kernel does
            mask.warn();
            mask.warn();
            assertThat(log.messages())
                    .containsExactly(
                            "rank 1 masks rank 2: it did not come to a low-latency call in time");
        }
    }
}
