package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Ranks that do not come, and what can be done wrong in opening a buffer: each gives its own clear
 * error on every rank concerned, and nothing hangs.
 */
@BackendSuite
public record BadInputConformance(TestBackend backend) {
    private void withoutOneRank(EpTopology topology, NormalWorld world, Misbehaviour.Act act) {
        Misbehaviour.withoutOneRank(
                backend(),
                topology,
                b -> b.normal(NormalMisuses.LIMITS),
                act,
                context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @GroupSource({"1, 4", "2, 2", "4, 1"})
    public void absentFromDispatch(int nodes, int ranksPerNode) {
        EpTopology topology = Ranks.topology(nodes, ranksPerNode);
        NormalWorld world = NormalMisuses.world(topology.numRanks());
        withoutOneRank(
                topology,
                world,
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), "dispatch", rank::roundTrip);
                        requireFailed(rank::roundTrip);
                    }
                });
    }

    @Cases
    @GroupSource({"1, 4", "2, 2", "4, 1"})
    public void absentFromCombine(int nodes, int ranksPerNode) {
        EpTopology topology = Ranks.topology(nodes, ranksPerNode);
        NormalWorld world = NormalMisuses.world(topology.numRanks());
        withoutOneRank(
                topology,
                world,
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    meet.run();
                    DispatchHandle handle = rank.dispatch(rank.plan(), world.check()).handle();
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(
                                context.rank(),
                                "combine",
                                () -> rank.combine(handle, world.check()));
                        requireFailed(() -> rank.combine(handle, world.check()));
                    }
                });
    }

    /** A rank that comes when the others have given up learns it, soon. */
    @Cases
    @GroupSource("1, 4")
    public void cameTooLate() {
        EpTopology topology = Ranks.topology(1, 4);
        NormalWorld world = NormalMisuses.world(4);
        CountDownLatch over = new CountDownLatch(topology.numRanks() - 1);
        withoutOneRank(
                topology,
                world,
                (context, meet) -> {
                    NormalRank rank = new NormalRank(context, world);
                    meet.run();
                    if (context.rank() != CULPRIT) {
                        requireTimeout(context.rank(), "dispatch", rank::roundTrip);
                        over.countDown();
                    } else {
                        awaitQuietly(over);
                        DeepEpTimeoutException error =
                                catchThrowableOfType(DeepEpTimeoutException.class, rank::roundTrip);
                        assertThat(error)
                                .as("a DeepEpTimeoutException on the late rank")
                                .isNotNull();
                        assertThat(error.rank()).isEqualTo(CULPRIT);
                        assertThat(error.peer()).isNotEqualTo(CULPRIT);
                        requireFailed(rank::roundTrip);
                    }
                });
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Cases
    @GroupSource("1, 4")
    public void absentFromOpen() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    if (communicator.rank() == CULPRIT) {
                        return;
                    }
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .timeout(SHORT);
                    requireTimeout(communicator.rank(), "", builder::open);
                });
    }

    /**
     * Ranks that want different buffers all learn it, with both values; afterwards the group can
     * open one.
     */
    @Test
    public void differentLimitsAtOpen() {
        NormalLimits other = NormalLimits.of(17, 256, 4, 16);
        requireOpenMismatch(
                (builder, culprit) -> builder.normal(culprit ? other : NormalMisuses.LIMITS),
                "maxTokens=17",
                "maxTokens=16");
    }

    /** The culprit's number of ranks per node, for backends that have nodes of both sizes. */
    static Stream<Integer> otherNodeSize(TestBackend backend) {
        return Stream.of(2)
                .filter(_ -> Ranks.fit(backend, Ranks.topology(1, 4)))
                .filter(size -> Ranks.fit(backend, Ranks.topology(4 / size, size)));
    }

    @Cases
    @MethodSource("otherNodeSize")
    public void differentNodeSizesAtOpen(int ranksPerNode) {
        requireOpenMismatch(
                (builder, culprit) ->
                        builder.normal(NormalMisuses.LIMITS)
                                .ranksPerNode(culprit ? ranksPerNode : 4),
                "ranksPerNode",
                "2",
                "4");
    }

    private void requireOpenMismatch(Misbehaviour.Options options, String... mentions) {
        NormalWorld world = NormalMisuses.world(4);
        Misbehaviour.requireOpenMismatch(
                backend(),
                options,
                b -> b.normal(NormalMisuses.LIMITS),
                context -> new NormalRank(context, world).roundTrip(),
                mentions);
    }

    /** A rank whose own options are impossible says so; the others are told whose. */
    @Cases
    @GroupSource("1, 4")
    public void tooSmallAnExplicitSizeOnOneRank() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    boolean culprit = communicator.rank() == CULPRIT;
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .numNvlBytes(culprit ? 128 : 0);
                    if (culprit) {
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("numNvlBytes=128");
                    } else {
                        assertThatThrownBy(builder::open)
                                .isInstanceOf(RankMismatchException.class)
                                .hasMessageContaining("rank 1");
                    }
                });
    }

    @Cases
    @GroupSource("1, 4")
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology), "lowLatency");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .ranksPerNode(3)
                                    .normal(NormalMisuses.LIMITS),
                            "numRanks=4 is not a multiple of numNvlRanks=3");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .timeout(Duration.ZERO),
                            "timeout=PT0S");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalMisuses.LIMITS)
                                    .timeout(ChronoUnit.FOREVER.getDuration()),
                            "at most PT8760H");
                    requireImpossible(
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(NormalLimits.of(Integer.MAX_VALUE, 256, 4, 16)),
                            "lower maxTokens or give maxRecvTokens");
                });
    }

    private static void requireImpossible(Buffer.Builder builder, String mentions) {
        assertThatThrownBy(builder::open)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(mentions);
    }
}
