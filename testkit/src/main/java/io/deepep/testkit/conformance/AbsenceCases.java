package io.deepep.testkit.conformance;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireFailed;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.Misbehaviour.requireTimeout;
import static io.deepep.testkit.conformance.Misbehaviour.withoutOneRank;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import java.time.Duration;

/**
 * Cases of both modes in which a rank does not come, or opens another buffer than the others.
 *
 * @param <H> what a dispatch gives to combines
 */
public interface AbsenceCases<H> extends RankGroup {
    /** Shorter than {@link Misbehaviour#SHORT}. */
    Duration LATE = Duration.ofMillis(50);

    TestBackend backend();

    /** The rank's share of a good exchange. */
    ExchangeRank<?, H> rank(RankContext context);

    /** From the first call, and in the middle of a loop. */
    @Cases({"1, 4", "2, 2", "4, 1"})
    default void absentFromDispatch(RankContext context) {
        for (int rounds : new int[] {0, 5}) {
            withoutOneRank(
                    context,
                    this,
                    hasty -> {
                        ExchangeRank<?, H> rank = rank(hasty);
                        hasty.meet();
                        for (int round = 0; round < rounds; round++) {
                            rank.roundTrip();
                        }
                        hasty.meet();
                        if (!hasty.isCulprit()) {
                            requireTimeout(hasty.rank(), "dispatch", rank::roundTrip);
                            requireFailed(rank::roundTrip);
                        }
                    });
        }
        rank(context).roundTrip();
    }

    @Cases({"1, 4", "2, 2", "4, 1"})
    default void absentFromCombine(RankContext context) {
        withoutOneRank(
                context,
                this,
                hasty -> {
                    ExchangeRank<?, H> rank = rank(hasty);
                    hasty.meet();
                    if (hasty.isCulprit()) {
                        // That the others have waited for its dispatch says nothing of its combine.
                        Misbehaviour.pause(LATE);
                    }
                    H handle = rank.newHandle();
                    hasty.meet();
                    if (!hasty.isCulprit()) {
                        requireTimeout(hasty.rank(), "combine", () -> rank.combine(handle));
                        requireFailed(() -> rank.combine(handle));
                    }
                });
        rank(context).roundTrip();
    }

    /** How ranks fill in their options. */
    interface Options {
        void fill(Buffer.Builder builder, boolean culprit);
    }

    /**
     * Ranks that want different buffers all learn it, with both values; afterwards the group can
     * open one.
     */
    default void requireOpenMismatch(Options options, String... mentions) {
        EpTopology topology = Ranks.four(backend());
        Ranks.runBare(
                backend(),
                topology,
                communicator -> {
                    Buffer.Builder builder = Ranks.builder(backend(), communicator, topology);
                    options.fill(builder, communicator.rank() == CULPRIT);
                    assertThat(requireMismatch(builder::open, mentions))
                            .hasMessageContaining("rank " + CULPRIT);
                    Buffer.Builder agreed = Ranks.builder(backend(), communicator, topology);
                    limit(agreed);
                    try (Buffer buffer = agreed.open()) {
                        rank(new RankContext(backend(), communicator, buffer)).roundTrip();
                    }
                });
    }
}
