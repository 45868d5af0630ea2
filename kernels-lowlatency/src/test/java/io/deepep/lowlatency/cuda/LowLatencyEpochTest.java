package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.error.RoutingException;
import io.deepep.lowlatency.CallEpoch;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls after days of calls, when epochs begin again and launches have long outnumbered them. */
class LowLatencyEpochTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(12, 384, 4, 12);
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final int ROUNDS = 6;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    private static MappedRanks open() {
        return new MappedRanks(LIMITS, TIMEOUT);
    }

    @BeforeAll
    static void requireCuda() {
        MappedRanks.requireCuda();
    }

    /**
     * What all ranks receive and combine once each kind of call was made {@code numCalls} times.
     */
    private static List<byte[]> outcomeAfter(long numCalls, boolean preReduced) {
        try (MappedRanks ranks = open();
                Arena arena = Arena.ofShared()) {
            if (numCalls > 0) {
                ranks.pretendCalls(numCalls);
            }
            return new Exchanges(ranks, arena).run(ROUNDS, BF16, CombineFormat.BF16, preReduced);
        }
    }

    @ParameterizedTest
    @CsvSource({"false", "true"})
    void epochsBeginAgain(boolean preReduced) {
        List<byte[]> first = outcomeAfter(0, preReduced);
        for (long before = 2; before <= 5; before++) {
            List<byte[]> later = outcomeAfter(CallEpoch.PERIOD - before, preReduced);
            for (int i = 0; i < first.size(); i++) {
                assertThat(later.get(i))
                        .as("%d before, outcome %d", before, i)
                        .isEqualTo(first.get(i));
            }
        }
    }

    /** A launch is not taken for one that failed a power of two of calls ago. */
    @ParameterizedTest
    @CsvSource({"28", "29", "30", "31"})
    void failureLongAgo(int bits) {
        try (MappedRanks ranks = open();
                Arena arena = Arena.ofShared()) {
            Exchanges exchanges = new Exchanges(ranks, arena);
            ranks.pretendCalls(8);
            Exchanges.Inputs bad = exchanges.inputs(1);
            exchanges.spoil(bad.topkIdx().getFirst());
            assertThatThrownBy(() -> ranks.dispatch(bad.x(), bad.topkIdx(), null, BF16))
                    .isInstanceOf(RoutingException.class);
            ranks.pretendCalls(8 + (1L << bits));
            ranks.delayTheLast(Duration.ofMillis(50));
            List<byte[]> later = exchanges.run(1, BF16, CombineFormat.BF16, false);
            assertThat(later)
                    .containsExactlyElementsOf(exchanges.run(1, BF16, CombineFormat.BF16, false));
        }
    }
}
