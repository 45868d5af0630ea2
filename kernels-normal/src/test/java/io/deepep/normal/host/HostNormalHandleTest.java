package io.deepep.normal.host;

import static io.deepep.normal.host.GoodCalls.HIDDEN;
import static io.deepep.normal.host.GoodCalls.limits;
import static io.deepep.normal.host.GoodCalls.plan;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.Operation;
import io.deepep.testkit.HostTensors;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a handle stands for after a dispatch of its plan, or one with it, has failed. */
class HostNormalHandleTest {
    private static RankGroup impatient(int numNodes, int numNvlRanks) {
        return new RankGroup(
                numNodes, numNvlRanks, limits(), new Config(6, 2, 4), Duration.ofMillis(300));
    }

    /** The last rank enters the call and does nothing more; returns whether this is another. */
    private static boolean failWithoutTheLast(Operation<?> dispatch, Rank rank, int numRanks) {
        dispatch.begin();
        if (rank.rank() == numRanks - 1) {
            return false;
        }
        if (rank.rank() == numRanks - 2 && numRanks > 2) {
            sleep(150); // so that ranks learn of the failure in different places
        }
        assertThatThrownBy(dispatch::complete).isInstanceOf(DeepEpTimeoutException.class);
        return true;
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"2, 1", "2, 2"})
    void ofADispatchThatFailedInTheMiddle(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        impatient(numNodes, numNvlRanks)
                .run(
                        rank -> {
                            Operation<DispatchResult> dispatch =
                                    rank.prepare(plan(rank.rank(), numRanks, 2 * numRanks));
                            HostDispatchHandle handle =
                                    (HostDispatchHandle) Rank.run(dispatch).handle();
                            assertThat(handle.isValid()).isTrue();
                            if (failWithoutTheLast(dispatch, rank, numRanks)) {
                                assertThat(handle.isValid()).isFalse();
                            }
                        });
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"2, 1", "2, 2"})
    void ofACachedDispatchThatFailed(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        impatient(numNodes, numNvlRanks)
                .run(
                        rank -> {
                            DispatchPlan plan = plan(rank.rank(), numRanks, 2 * numRanks).build();
                            DispatchResult got = rank.dispatch(plan);
                            Operation<?> cached =
                                    rank.prepare(
                                            DispatchPlan.builder(plan.x()).cached(got.handle()));
                            failWithoutTheLast(cached, rank, numRanks);
                            assertThat(((HostDispatchHandle) got.handle()).isValid()).isTrue();
                        });
    }

    /** Weights go home in as many parts as there are flags for them. */
    @Test
    void combinedWithMoreSmsThanFlags() throws Exception {
        int numTokens = 520;
        RankGroup group =
                new RankGroup(
                        2,
                        1,
                        NormalLimits.of(numTokens, HIDDEN, 2, 4),
                        new Config(600, 2, 4),
                        Duration.ofSeconds(20));
        group.run(
                rank -> {
                    Tensor topk = HostTensors.allocate(DType.I64, numTokens, 2);
                    Tensor weights = HostTensors.allocate(DType.F32, numTokens, 2);
                    for (int token = 0; token < numTokens; token++) {
                        for (int k = 0; k < 2; k++) {
                            topk.setLong(2L * k, token, k);
                            weights.setFloat(token + k, token, k);
                        }
                    }
                    Tensor x = HostTensors.allocate(DType.BF16, numTokens, HIDDEN);
                    DispatchResult got =
                            rank.dispatch(DispatchPlan.builder(x).topk(topk, weights, 4));
                    Tensor home =
                            rank.combine(
                                            CombinePlan.builder(got.recvX(), got.handle())
                                                    .topkWeights(got.recvTopkWeights()))
                                    .topkWeights();
                    for (int token = 0; token < numTokens; token++) {
                        assertThat(home.getFloat(token, 0)).isEqualTo(token);
                        assertThat(home.getFloat(token, 1)).isEqualTo(token + 1);
                    }
                });
    }
}
