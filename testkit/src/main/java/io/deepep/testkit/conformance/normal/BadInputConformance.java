package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Misbehaviour.caught;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;
import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static io.deepep.testkit.conformance.Misbehaviour.withoutOneRank;
import static io.deepep.testkit.conformance.normal.NormalMisuses.LIMITS;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.AbsenceCases;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Ranks that do not come, and what can be done wrong in opening a buffer: each gives its own clear
 * error on every rank concerned, and nothing hangs.
 */
@BackendSuite
public record BadInputConformance(TestBackend backend)
        implements NormalMisuses.Group, AbsenceCases<DispatchHandle> {
    @Override
    public NormalRank rank(RankContext context) {
        return NormalMisuses.rank(context);
    }

    /** A rank that comes when the others have given up learns it, soon. */
    @Cases("1, 4")
    public void cameTooLate(RankContext context) {
        CountDownLatch over =
                context.shared("over", _ -> new CountDownLatch(context.topology().numRanks() - 1));
        withoutOneRank(
                context,
                this,
                hasty -> {
                    NormalRank rank = rank(hasty);
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "dispatch", rank::roundTrip);
                        over.countDown();
                        return;
                    }
                    awaitQuietly(over);
                    DeepEpTimeoutException error =
                            caught(DeepEpTimeoutException.class, rank::roundTrip);
                    assertThat(error.rank()).isEqualTo(CULPRIT);
                    assertThat(error.peer()).isNotEqualTo(CULPRIT);
                    requireFailed(rank::roundTrip);
                });
        rank(context).roundTrip();
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Cases("1, 4")
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
                                    .normal(LIMITS)
                                    .timeout(SHORT);
                    DeepEpTimeoutException error = requirePeer(CULPRIT, builder::open);
                    assertThat(error.rank()).isEqualTo(communicator.rank());
                    assertThat(error.waited()).isPositive(); // until the first gave up
                    assertThat(error)
                            .hasMessageContaining("for rank " + CULPRIT + " to open its buffer; ");
                });
    }

    @Test
    public void differentLimitsAtOpen() {
        NormalLimits other = NormalLimits.of(17, 256, 4, 16);
        requireOpenMismatch(
                (builder, culprit) -> builder.normal(culprit ? other : LIMITS),
                "maxTokens=17",
                "maxTokens=16");
    }

    /** The culprit's number of ranks per node, for backends that have nodes of both sizes. */
    static Stream<Integer> otherNodeSize(TestBackend backend) {
        return Stream.of(2)
                .filter(_ -> Ranks.fit(backend, Ranks.topology(1, 4)))
                .filter(size -> Ranks.fit(backend, Ranks.topology(4 / size, size)));
    }

    @Cases(from = "otherNodeSize")
    public void differentNodeSizesAtOpen(int ranksPerNode) {
        requireOpenMismatch(
                (builder, culprit) ->
                        builder.normal(LIMITS).ranksPerNode(culprit ? ranksPerNode : 4),
                "ranksPerNode",
                "2",
                "4");
    }

    /** A rank whose own options are impossible says so; the others are told whose. */
    @Cases("1, 4")
    public void tooSmallAnExplicitSizeOnOneRank() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    boolean culprit = communicator.rank() == CULPRIT;
                    Buffer.Builder builder =
                            Ranks.builder(backend(), communicator, topology)
                                    .normal(LIMITS)
                                    .numNvlBytes(culprit ? 128 : 0);
                    requireRefused(
                            culprit ? IllegalArgumentException.class : RankMismatchException.class,
                            culprit ? "numNvlBytes=128" : "rank 1",
                            builder::open);
                });
    }

    @Cases("1, 4")
    public void impossibleOptions() {
        EpTopology topology = Ranks.topology(1, 4);
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Supplier<Buffer.Builder> fresh =
                            () -> Ranks.builder(backend(), communicator, topology);
                    Supplier<Buffer.Builder> normal = () -> fresh.get().normal(LIMITS);
                    requireIllegal(fresh.get()::open, "lowLatency");
                    requireIllegal(
                            normal.get().ranksPerNode(3)::open,
                            "ranksPerNode=3 does not divide the 4 ranks of the group");
                    requireIllegal(() -> normal.get().timeout(Duration.ZERO), "timeout=PT0S");
                    requireIllegal(
                            () -> normal.get().timeout(ChronoUnit.FOREVER.getDuration()),
                            "at most PT8760H");
                    requireIllegal(
                            fresh.get().normal(NormalLimits.of(Integer.MAX_VALUE, 256, 4, 16))
                                    ::open,
                            "lower maxTokens or give maxRecvTokens");
                });
    }
}
