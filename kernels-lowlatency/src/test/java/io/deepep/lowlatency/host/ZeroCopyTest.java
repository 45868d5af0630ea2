package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostMemory;
import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Combine reads the buffer's own memory in place, and other memory whatever its strides. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class ZeroCopyTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(6, 128, 3, 8);
    private static final int RANKS = 4;
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    @Test
    void rowsAreCombinedFromWhereverTheyLie() throws Exception {
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
                                            HostMemory.allocate(
                                                    Arena.ofAuto(), own.capacityBytes()),
                                            DType.BF16,
                                            own.shape(),
                                            new long[] {128, 256, 1});
                            for (int expert = 0; expert < 2; expert++) {
                                for (int row = 0; row < 24; row++) {
                                    for (int h = 0; h < 128; h++) {
                                        twisted.setLong(
                                                own.getLong(expert, row, h), expert, row, h);
                                    }
                                }
                            }
                            batch.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(batch, twisted, got)));
                            batch.verifyEcho(
                                    rank.rank(), rank.combined(rank.home(batch, own, got)));
                        });
    }
}
