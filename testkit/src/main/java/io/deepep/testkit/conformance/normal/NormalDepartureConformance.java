package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Ranks;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/**
 * A rank that fails or leaves is known to all at once, with its cause: the time-out here is so long
 * that only this ends the others' calls.
 */
@BackendSuite
public record NormalDepartureConformance(TestBackend backend) implements NormalSuite {
    private static final Duration LONG = Duration.ofHours(1);
    private static final int CULPRIT = 1;

    /** What the others do, in vain. */
    private interface Call {
        void make(NormalRank rank, DispatchHandle handle);
    }

    private void requireNamed(int nodes, int ranksPerNode, boolean orderly, Call call) {
        NormalShape shape = new NormalShape(nodes, ranksPerNode, 16, 128, DType.BF16, 3, 24);
        CountDownLatch others = new CountDownLatch(shape.topology().numRanks() - 1);
        shape.run(
                backend(),
                builder -> builder.timeout(LONG),
                context -> {
                    NormalRank rank = shape.rank(context);
                    DispatchHandle handle = rank.dispatch().handle();
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != CULPRIT) {
                        try {
                            requireTimeout(orderly, () -> call.make(rank, handle));
                        } finally {
                            others.countDown();
                        }
                        return;
                    }
                    if (orderly) {
                        context.communicator().close();
                    } else {
                        context.communicator().fail(new IOException("disk full"));
                    }
                    others.await();
                });
    }

    private static void requireTimeout(boolean orderly, ThrowingCallable call) {
        assertThat(requirePeer(CULPRIT, call))
                .hasMessageStartingWith(
                        orderly
                                ? "rank 1 has left the group; rank "
                                : "rank 1 failed: java.io.IOException: disk full; rank ");
    }

    private static void combine(NormalRank rank, DispatchHandle handle) {
        rank.combine(handle);
    }

    private static void dispatch(NormalRank rank, DispatchHandle handle) {
        rank.dispatch();
    }

    @Cases(
            value = {"1, 4", "2, 2", "3, 2"},
            ofThreads = true)
    public void failedBeforeADispatch(int nodes, int ranksPerNode) {
        requireNamed(nodes, ranksPerNode, false, NormalDepartureConformance::dispatch);
    }

    @Cases(
            value = {"1, 4", "2, 2", "3, 2"},
            ofThreads = true)
    public void failedBeforeACombine(int nodes, int ranksPerNode) {
        requireNamed(nodes, ranksPerNode, false, NormalDepartureConformance::combine);
    }

    @Cases(
            value = {"1, 2", "2, 1"},
            ofThreads = true)
    public void leftBeforeADispatch(int nodes, int ranksPerNode) {
        requireNamed(nodes, ranksPerNode, true, NormalDepartureConformance::dispatch);
    }
}
