package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.LowLatencyLimits;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** A process that was stopped itself gives nobody up for the time in which it did not run. */
class StoppedProcessTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(2);
    private static final CallTimeouts TIMEOUTS = new CallTimeouts(TIMEOUT, Duration.ofMinutes(1));

    /** Looks of rank 0 since rank 1 has begun: it has seen that, and sees it again afterwards. */
    private static final int STOP = 3;

    private static final int GO_ON = STOP + 20;

    /** Rank 1 has begun the call when the process stops, and sends its rows afterwards. */
    @Test
    void aRankThatHasBegunHasItsTimeAfterTheStop() throws Exception {
        var limits = new LowLatencyLimits(2, 128, 1, 2);
        Batch batch = Batch.cyclic(limits, 2, 2, 1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        AtomicInteger looks = new AtomicInteger();
        new Group(2, limits)
                .waits(
                        TIMEOUTS,
                        () -> {
                            int look = begun.getCount() == 0 ? looks.incrementAndGet() : 0;
                            if (look == STOP) {
                                pause(TIMEOUT.multipliedBy(2)); // as if it were stopped
                            } else if (look == GO_ON) {
                                goesOn.countDown();
                            }
                            return List.of();
                        })
                .run(
                        rank -> {
                            if (rank.rank() == 1) {
                                int format = LowLatencyFormats.Code.BF16.value();
                                new Headers(Kind.DISPATCH, rank.kernels())
                                        .begin(0, CallEpoch.of(1), format);
                                begun.countDown();
                                assertThat(goesOn.await(20, TimeUnit.SECONDS)).isTrue();
                            }
                            rank.roundTrip(batch);
                        });
    }

    /** Also if doorbells wake this thread. */
    private static void pause(Duration time) {
        long end = System.nanoTime() + time.toNanos();
        for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }
}
