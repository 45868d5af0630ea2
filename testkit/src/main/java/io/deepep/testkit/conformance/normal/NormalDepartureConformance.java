package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.whileGone;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * A rank that fails or leaves is known to all at once, with its cause: the time-out here is so long
 * that only this ends the others' calls.
 */
@BackendSuite
public record NormalDepartureConformance(TestBackend backend) {
    private static final int LEAVING = 1;

    /** What the others do, in vain. */
    private interface Call {
        void make(NormalRank rank, DispatchHandle handle);
    }

    private void requireNamed(
            int nodes, int ranksPerNode, Consumer<Communicator> departure, String why, Call call) {
        NormalShape shape = new NormalShape(nodes, ranksPerNode, 16, 128, DType.BF16, 3, 24);
        shape.run(
                backend(),
                builder -> builder.timeout(Duration.ofHours(1)),
                context -> {
                    NormalRank rank = shape.rank(context);
                    DispatchHandle handle = rank.newHandle();
                    whileGone(
                            context,
                            LEAVING,
                            departure,
                            _ ->
                                    assertThat(requirePeer(LEAVING, () -> call.make(rank, handle)))
                                            .hasMessageStartingWith("rank 1 " + why + "; rank "));
                });
    }

    private void requireFailureNamed(int nodes, int ranksPerNode, Call call) {
        String why = "failed: java.io.IOException: disk full";
        requireNamed(nodes, ranksPerNode, Misbehaviour::fail, why, call);
    }

    @Cases(
            value = {"1, 4", "2, 2", "3, 2"},
            ofThreads = true)
    public void failedBeforeADispatch(int nodes, int ranksPerNode) {
        requireFailureNamed(nodes, ranksPerNode, (rank, _) -> rank.dispatch());
    }

    @Cases(
            value = {"1, 4", "2, 2", "3, 2"},
            ofThreads = true)
    public void failedBeforeACombine(int nodes, int ranksPerNode) {
        requireFailureNamed(nodes, ranksPerNode, NormalRank::combine);
    }

    @Cases(
            value = {"1, 2", "2, 1"},
            ofThreads = true)
    public void leftBeforeADispatch(int nodes, int ranksPerNode) {
        requireNamed(
                nodes,
                ranksPerNode,
                Communicator::close,
                "has left the group",
                (rank, _) -> rank.dispatch());
    }
}
