package io.deepep.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.bench.run.RankTeam;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

final class SamplesTest {
    @Test
    void percentilesAreOfTheNearestRank() {
        Samples samples =
                Samples.of(LongStream.rangeClosed(1, 200).map(i -> (201 - i) * 1000).toArray());
        for (int percent = 1; percent <= 100; percent++) {
            assertThat(samples.percentileMicros(percent)).isEqualTo(2 * percent);
        }
        assertThat(samples.maxMicros()).isEqualTo(200);
        assertThat(samples.count()).isEqualTo(200);
    }

    @Test
    void oneSampleIsEveryPercentile() {
        Samples one = Samples.of(2_000);
        assertThat(one.percentileMicros(1)).isEqualTo(2);
        assertThat(one.percentileMicros(99)).isEqualTo(2);
        assertThat(one.bytesPerSecond(4)).isEqualTo(2e6);
    }

    @Test
    void nonsenseIsRefused() {
        assertThatThrownBy(Samples::of).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Samples.of(1).percentileMicros(0))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Samples.of(1).percentileMicros(101))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void warmupsRunButDoNotCount() {
        AtomicInteger calls = new AtomicInteger();
        try (RankTeam team = RankTeam.start(3)) {
            Samples samples = Samples.measure(team, 2, 4, rank -> calls.incrementAndGet());
            assertThat(samples.count()).isEqualTo(4);
        }
        assertThat(calls).hasValue(3 * (2 + 4));
    }

    @Test
    void everyRunAfterTheWarmupsIsASample() {
        AtomicInteger calls = new AtomicInteger();
        Samples samples = Samples.measure(2, 4, () -> 1000L * calls.incrementAndGet());
        assertThat(samples.percentileMicros(25)).isEqualTo(3);
        assertThat(samples.percentileMicros(50)).isEqualTo(4);
        assertThat(samples.maxMicros()).isEqualTo(6);
    }
}
