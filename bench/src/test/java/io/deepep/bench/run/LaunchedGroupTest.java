package io.deepep.bench.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LaunchedGroupTest {
    private static final Duration LONG = Duration.ofMinutes(1);

    /** The rank that throws lives on until the other has seen why it left. */
    @Test
    void whatARankThrowsIsKnownToTheOthersAtOnce() throws InterruptedException {
        CountDownLatch seen = new CountDownLatch(1);
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            assertThatThrownBy(() -> failingWork(communicator))
                                    .isInstanceOf(UncheckedIOException.class);
                            seen.await();
                            return;
                        }
                        DeepEpTimeoutException error =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> communicator.barrier(LONG));
                        seen.countDown();
                        assertThat(error.peer()).isEqualTo(1);
                        assertThat(error).hasMessageContaining("disk full");
                    });
        }
    }

    private static void failingWork(Communicator communicator) {
        LaunchedGroup.run(
                communicator,
                _ -> {
                    throw new UncheckedIOException(new IOException("disk full"));
                });
    }

    /** A host may still wait in each attempt before, while another restarts at once each time. */
    @Test
    void anAttemptOutlastsAllBeforeIt() {
        Duration before = Duration.ZERO;
        for (int attempt = 0; attempt <= 8; attempt++) {
            Duration patience = patience(Integer.toString(attempt));
            assertThat(patience).as("attempt %s", attempt).isGreaterThan(before);
            before = before.plus(patience);
        }
        assertThat(patience("0")).isEqualTo(LONG);
        assertThat(patience("999999999")).isEqualTo(patience("8"));
        assertThat(patience("many")).isEqualTo(LONG);
        assertThat(LaunchedGroup.patience(LONG, Map.of())).isEqualTo(LONG);
    }

    private static Duration patience(String restarts) {
        return LaunchedGroup.patience(LONG, Map.of("TORCHELASTIC_RESTART_COUNT", restarts));
    }
}
