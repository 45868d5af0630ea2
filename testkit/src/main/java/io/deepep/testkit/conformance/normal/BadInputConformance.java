package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static io.deepep.testkit.conformance.Misbehaviour.withoutOneRank;
import static io.deepep.testkit.conformance.normal.NormalMisuses.LIMITS;
import static org.assertj.core.api.Assertions.assertThat;
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
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Ranks that do not come, and what can be done wrong in opening a buffer: each gives its own clear
 * error on every rank concerned, and nothing hangs.
 */
@BackendSuite
public record BadInputConformance(TestBackend backend) implements NormalMisuses.Group {
    @Cases({"1, 4", "2, 2", "4, 1"})
    public void absentFromDispatch(RankContext context) {
        withoutOneRank(
                context,
                this,
                hasty -> {
                    NormalRank rank = NormalMisuses.rank(hasty);
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "dispatch", rank::roundTrip);
                        requireFailed(rank::roundTrip);
                    }
                });
        NormalMisuses.rank(context).roundTrip();
    }

    @Cases({"1, 4", "2, 2", "4, 1"})
    public void absentFromCombine(RankContext context) {
        withoutOneRank(
                context,
                this,
                hasty -> {
                    NormalRank rank = NormalMisuses.rank(hasty);
                    hasty.meet();
                    DispatchHandle handle = rank.dispatch().handle();
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "combine", () -> rank.combine(handle));
                        requireFailed(() -> rank.combine(handle));
                    }
                });
        NormalMisuses.rank(context).roundTrip();
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
                    NormalRank rank = NormalMisuses.rank(hasty);
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "dispatch", rank::roundTrip);
                        over.countDown();
                        return;
                    }
                    awaitQuietly(over);
                    DeepEpTimeoutException error =
                            catchThrowableOfType(DeepEpTimeoutException.class, rank::roundTrip);
                    assertThat(error).as("a DeepEpTimeoutException on the late rank").isNotNull();
                    assertThat(error.rank()).isEqualTo(CULPRIT);
                    assertThat(error.peer()).isNotEqualTo(CULPRIT);
                    requireFailed(rank::roundTrip);
                });
        NormalMisuses.rank(context).roundTrip();
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

    /**
     * Ranks that want different buffers all learn it, with both values; afterwards the group can
     * open one.
     */
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

    @Cases
    @MethodSource("otherNodeSize")
    public void differentNodeSizesAtOpen(int ranksPerNode) {
        requireOpenMismatch(
                (builder, culprit) ->
                        builder.normal(LIMITS).ranksPerNode(culprit ? ranksPerNode : 4),
                "ranksPerNode",
                "2",
                "4");
    }

    private void requireOpenMismatch(Misbehaviour.Options options, String... mentions) {
        Misbehaviour.requireOpenMismatch(
                backend(),
                options,
                this,
                context -> NormalMisuses.rank(context).roundTrip(),
                mentions);
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
                    requireImpossible(fresh.get(), "lowLatency");
                    requireImpossible(
                            normal.get().ranksPerNode(3),
                            "ranksPerNode=3 does not divide the 4 ranks of the group");
                    requireImpossible(normal.get().timeout(Duration.ZERO), "timeout=PT0S");
                    requireImpossible(
                            normal.get().timeout(ChronoUnit.FOREVER.getDuration()),
                            "at most PT8760H");
                    requireImpossible(
                            fresh.get().normal(NormalLimits.of(Integer.MAX_VALUE, 256, 4, 16)),
                            "lower maxTokens or give maxRecvTokens");
                });
    }

    private static void requireImpossible(Buffer.Builder builder, String mentions) {
        requireRefused(IllegalArgumentException.class, mentions, builder::open);
    }
}
