package io.deepep.testkit.conformance.normal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.exchange.NormalWorld;
import java.io.IOException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks that are masked, by hand or because they did not come, and that come back. */
@BackendSuite
public record NormalMaskConformance(TestBackend backend) implements NormalSuite {
    private static final int ROUNDS = 3;

    private static NormalShape shape(int numRanks) {
        return NormalShape.small(Ranks.topology(1, numRanks));
    }

    /** Every kind of call, verified. */
    static void calls(NormalRank rank) {
        DispatchHandle handle = rank.dispatch().handle();
        rank.combine(handle);
        rank.combineFp8(handle);
        rank.combineFp8Rows(handle);
        Buffer buffer = rank.context().buffer();
        rank.combineWithWeights(handle, CombineFormat.BF16);
        DispatchPlan cached = rank.bare().cached(handle).build();
        rank.combine(buffer.dispatch(cached).handle());
        rank.roundTrip(rank.plan().expanded(true), rank.check().expanded(1));
    }

    static void requireMasked(RankContext context, Set<Integer> masked) {
        int[] expected = new int[context.topology().numRanks()];
        masked.forEach(rank -> expected[rank] = 1);
        assertThat(context.buffer().queryMask()).containsExactly(expected);
    }

    /** The ranks that are left go on, if this is one of them; then all are back. */
    static void goOnWithout(
            RankContext context,
            Set<Integer> absent,
            int rounds,
            NormalWorld rest,
            NormalWorld whole) {
        if (!absent.contains(context.rank())) {
            absent.forEach(rank -> context.buffer().updateMask(rank, true));
            requireMasked(context, absent);
            NormalRank survivor = new NormalRank(context, rest);
            for (int i = 0; i < rounds; i++) {
                calls(survivor);
            }
        }
        comeBack(context, whole);
    }

    static void comeBack(RankContext context, NormalWorld whole) {
        context.buffer().rejoin();
        requireMasked(context, Set.of());
        calls(new NormalRank(context, whole));
    }

    /** Each rank pauses before a call for less than the time-out. */
    static void slowIsNotDead(TestBackend backend, NormalShape shape) {
        shape.run(
                backend,
                builder -> builder.timeout(Ranks.TIMEOUT).maskTimedOutRanks(true),
                context -> {
                    NormalRank rank = shape.rank(context);
                    for (int slow = 0; slow < shape.topology().numRanks(); slow++) {
                        if (context.rank() == slow) {
                            Thread.sleep(Misbehaviour.SHORT);
                        }
                        calls(rank);
                    }
                    requireMasked(context, Set.of());
                });
    }

    /**
     * A masked rank is neither sent to nor waited for, also the first; back again, it takes part.
     */
    @Cases({"1, 4, 3", "1, 4, 0", "1, 3, 1", "1, 8, 5", "1, 2, 0"})
    public void byHand(int nodes, int numRanks, int absent) {
        byHand(backend, shape(numRanks), Set.of(absent), ROUNDS, _ -> {});
    }

    /** The others go on without ranks that they mask, in buffers with these options. */
    static void byHand(
            TestBackend backend,
            NormalShape shape,
            Set<Integer> absent,
            int rounds,
            Consumer<Buffer.Builder> options) {
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        shape.run(
                backend,
                options,
                context -> {
                    calls(new NormalRank(context, whole));
                    goOnWithout(context, absent, rounds, rest, whole);
                });
    }

    /** What was dispatched to other ranks than take part now is refused on all of them. */
    @Cases("1, 4")
    public void handlesOfOtherMasks() {
        NormalNodeMaskConformance.handlesOfOtherMasks(backend, shape(4), 2);
    }

    static Stream<EpTopology> groupsOverNetworks(TestBackend backend) {
        return Stream.of(Ranks.topology(2, 2))
                .filter(group -> Ranks.fit(backend, group) && refuses(backend));
    }

    private static boolean refuses(TestBackend backend) {
        return !backend.networkWithMasks().equals(backend.network());
    }

    /** Where a network connects the nodes without masks, nobody is left out, and calls go on. */
    @Cases
    @MethodSource("groupsOverNetworks")
    public void refusedOverNetworks(EpTopology topology) {
        NormalShape shape = NormalShape.small(topology);
        shape.run(
                backend,
                _ -> {},
                context -> {
                    int other = (context.rank() + 1) % topology.numRanks();
                    assertThatThrownBy(() -> context.buffer().updateMask(other, true))
                            .isInstanceOf(UnsupportedOperationException.class)
                            .hasMessageContaining("if a network connects the nodes");
                    requireMasked(context, Set.of());
                    calls(shape.rank(context));
                });
    }

    /** Of ranks that leave out different ones, those that hear of each other learn it. */
    @Cases("1, 4")
    public void differentMasks() {
        NormalShape shape = shape(4);
        shape.run(
                backend,
                _ -> {},
                context -> {
                    NormalRank rank = shape.rank(context);
                    calls(rank);
                    Buffer buffer = context.buffer();
                    // Rank 3 comes, but 0 does not listen to it, nor it to 0.
                    if (context.rank() == 0 || context.rank() == 3) {
                        buffer.updateMask(3 - context.rank(), true);
                    }
                    Misbehaviour.requireMismatch(
                            () -> buffer.dispatch(rank.plan().build()), "masked ranks");
                    buffer.rejoin();
                    calls(rank);
                });
    }

    /** A rank that stops is named, masked, left out and taken back. */
    @Cases({"1, 4, 2", "1, 3, 0"})
    public void byTimeout(int nodes, int numRanks, int absent) {
        byTimeout(backend, shape(numRanks), absent, Ranks.TIMEOUT);
    }

    /** patience: for how long the rank that stopped waits until the others have gone on. */
    static void byTimeout(TestBackend backend, NormalShape shape, int absent, Duration patience) {
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        shape.run(
                backend,
                builder -> builder.timeout(Duration.ofSeconds(2)).maskTimedOutRanks(true),
                context -> {
                    calls(new NormalRank(context, whole));
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != absent) {
                        NormalRank survivor = new NormalRank(context, rest);
                        Misbehaviour.requirePeer(absent, () -> calls(survivor));
                        requireMasked(context, Set.of(absent));
                        for (int i = 0; i < ROUNDS; i++) {
                            calls(survivor);
                        }
                    }
                    context.communicator().barrier(patience);
                    comeBack(context, whole);
                });
    }

    /** A rank that fails is masked at once, and known to be gone no more. */
    @Cases(value = "1, 4", ofThreads = true)
    public void failed() {
        int absent = 1;
        NormalShape shape = shape(4);
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(absent);
        CountDownLatch others = new CountDownLatch(3);
        shape.run(
                backend,
                builder -> builder.timeout(Duration.ofHours(1)).maskTimedOutRanks(true),
                context -> {
                    calls(new NormalRank(context, whole));
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() == absent) {
                        context.communicator().fail(new IOException("disk full"));
                        others.await();
                        return;
                    }
                    try {
                        NormalRank survivor = new NormalRank(context, rest);
                        assertThatThrownBy(() -> calls(survivor))
                                .isInstanceOf(DeepEpTimeoutException.class)
                                .hasMessageStartingWith("rank 1 failed");
                        for (int i = 0; i < ROUNDS; i++) {
                            calls(survivor);
                        }
                    } finally {
                        others.countDown();
                    }
                });
    }

    /** Once that rank is masked, one that failed because of it is named and masked itself. */
    @Cases(value = "1, 4", ofThreads = true)
    public void failedBecauseOfAnother() {
        int absent = 3;
        int victim = 2;
        NormalShape shape = shape(4);
        NormalWorld whole = shape.world();
        NormalWorld rest = whole.without(Set.of(absent, victim));
        CountDownLatch others = new CountDownLatch(3);
        shape.run(
                backend,
                builder -> builder.timeout(Duration.ofHours(1)).maskTimedOutRanks(true),
                context -> {
                    NormalRank rank = new NormalRank(context, whole);
                    calls(rank);
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() == absent) {
                        context.communicator().fail(new IOException("disk full"));
                        others.await();
                        return;
                    }
                    try {
                        DeepEpTimeoutException first =
                                Misbehaviour.requirePeer(absent, () -> calls(rank));
                        if (context.rank() == victim) {
                            context.communicator().fail(first);
                            return;
                        }
                        Misbehaviour.requirePeer(victim, () -> calls(rank));
                        requireMasked(context, Set.of(absent, victim));
                        calls(new NormalRank(context, rest));
                    } finally {
                        others.countDown();
                    }
                });
    }

    /** A pause that is shorter than the time-out changes nothing. */
    @Cases("1, 4")
    public void slowIsNotDead() {
        slowIsNotDead(backend, shape(4));
    }
}
