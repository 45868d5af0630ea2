package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Zero copy takes the combine buffer of the handle and nothing else. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class ZeroCopyTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 8, 3);
    private static final int RANKS = 4;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    @Test
    void zeroCopyWantsTheBuffersOwnTensor() throws Exception {
        Batch batch = Batch.cyclic(LIMITS, RANKS, 6, 3);
        new Group(RANKS, LIMITS)
                .run(
                        rank -> {
                            LowLatencyDispatchResult got = rank.dispatched(batch, BF16);
                            Tensor own = rank.kernels().combineBuffer(got.handle());
                            own.segment().copyFrom(got.recvX().segment());
                            assertThat(own.shape()).containsExactly(2, 24, 128);
                            Tensor twisted =
                                    Tensor.strided(
                                            own.segment(),
                                            DType.BF16,
                                            own.shape(),
                                            new long[] {128, 256, 1});
                            for (Tensor other : new Tensor[] {got.recvX(), twisted}) {
                                var request = rank.home(batch, other, got).zeroCopy(true).build();
                                assertThat(
                                                catchThrowable(
                                                        () ->
                                                                rank.kernels()
                                                                        .prepareCombine(request)))
                                        .isInstanceOf(IllegalArgumentException.class)
                                        .hasMessageContaining("zeroCopy");
                            }
                            batch.verifyEcho(
                                    rank.rank(),
                                    rank.combined(rank.home(batch, own, got).zeroCopy(true)));
                        });
    }
}
