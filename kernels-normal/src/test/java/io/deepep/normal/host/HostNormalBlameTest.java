package io.deepep.normal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DispatchResult;
import io.deepep.NormalLimits;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.spi.Operation;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A rank that enters a call and then does nothing more is the one that all others name, also those
 * that wait for a rank which waits for it: a forwarder, or one that has no room left.
 */
@Execution(ExecutionMode.CONCURRENT) // its cases wait
class HostNormalBlameTest {
    private static final int CULPRIT = 1;
    private static final int NUM_TOKENS = 64;
    private static final int NUM_TOPK = 3;
    private static final int HIDDEN = 64;

    private static RankGroup group(int numNodes, int numNvlRanks) {
        int numExperts = 2 * numNodes * numNvlRanks;
        NormalLimits limits = NormalLimits.of(NUM_TOKENS, HIDDEN, NUM_TOPK, numExperts);
        // Far fewer slots than tokens.
        Config config = new Config(4, 1, 2);
        return new RankGroup(numNodes, numNvlRanks, limits, config, Duration.ofSeconds(2));
    }

    private static NormalWorld world(int numRanks, int seed) {
        RoutingSpec spec = RoutingSpec.of(numRanks, NUM_TOKENS, 2 * numRanks, NUM_TOPK);
        return NormalWorld.bf16(spec.withMaskedShare(0.2).withSeed(seed), HIDDEN);
    }

    private static void requireCulprit(Operation<?> operation, int rank) {
        DeepEpTimeoutException failure =
                catchThrowableOfType(DeepEpTimeoutException.class, operation::complete);
        assertThat(failure).as("a timeout on rank %d", rank).isNotNull();
        assertThat(failure.peer()).as(failure.getMessage()).isEqualTo(CULPRIT);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"2, 2", "2, 4", "3, 2", "4, 1"})
    void inADispatch(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        NormalWorld world = world(numRanks, 3);
        group(numNodes, numNvlRanks)
                .run(
                        rank -> {
                            Operation<?> operation = rank.prepare(rank.plan(world));
                            operation.begin();
                            if (rank.rank() != CULPRIT) {
                                requireCulprit(operation, rank.rank());
                            }
                        });
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 4", "2, 2", "3, 2", "4, 1"})
    void inACombine(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        NormalWorld world = world(numRanks, 5);
        group(numNodes, numNvlRanks)
                .run(
                        rank -> {
                            DispatchResult got = rank.dispatch(rank.plan(world));
                            Operation<?> operation =
                                    rank.prepare(CombinePlan.builder(got.recvX(), got.handle()));
                            operation.begin();
                            if (rank.rank() != CULPRIT) {
                                requireCulprit(operation, rank.rank());
                            }
                        });
    }
}
