package io.deepep.testkit.conformance.replacement;

import static io.deepep.testkit.conformance.Misbehaviour.caught;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;
import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.provider.MethodSource;

/** New ranks that take the places of dead ones in buffers that stay open. */
@BackendSuite
public record ReplacementConformance(TestBackend backend) {
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final List<Long> SEEDS = List.of(1L, 2L, 3L);

    static Stream<ReplacedGroup> groups(TestBackend backend) {
        return Stream.of(
                        new ReplacedGroup(backend, Ranks.topology(1, 4), Set.of(2)),
                        new ReplacedGroup(backend, Ranks.topology(1, 3), Set.of(0)),
                        new ReplacedGroup(backend, Ranks.topology(1, 2), Set.of(1)),
                        new ReplacedGroup(backend, Ranks.topology(1, 4), Set.of(0, 3)),
                        new ReplacedGroup(backend, Ranks.topology(1, 10), Set.of(9)),
                        new ReplacedGroup(backend, Ranks.topology(2, 2), Set.of(2)),
                        new ReplacedGroup(backend, Ranks.topology(2, 2), Set.of(0, 1)))
                .filter(group -> Ranks.fit(backend, group.topology()))
                .filter(group -> isReplaceable(backend, group.topology()));
    }

    static Stream<ReplacedGroup> oneGroup(TestBackend backend) {
        return groups(backend).limit(1);
    }

    static Stream<ReplacedGroup> oneGroupOfThreads(TestBackend backend) {
        return groups(backend).filter(group -> Ranks.areThreads()).limit(1);
    }

    static Stream<EpTopology> groupsOverNetworks(TestBackend backend) {
        return Stream.of(Ranks.topology(2, 2))
                .filter(group -> Ranks.fit(backend, group) && !isReplaceable(backend, group));
    }

    static Stream<ReplacedGroup> recordingGroups(TestBackend backend) {
        return groups(backend).filter(group -> backend.canRecord());
    }

    private static boolean isReplaceable(TestBackend backend, EpTopology topology) {
        return !topology.isInternode() || backend.outlivesRanks();
    }

    /** Masked, left out, and replaced, by a rank that is replaced itself. */
    @Cases
    @MethodSource("groups")
    public void replaced(ReplacedGroup group) {
        group.run(
                context -> {
                    group.lose(context);
                    if (!group.isDead(context)) {
                        group.mask(context);
                        group.callsOfTheRest(context);
                    }
                    group.replace(context, 1);
                    group.replace(context, 2);
                });
    }

    /** A plan from before the death finds the new rank. */
    @Cases
    @MethodSource("oneGroup")
    public void plansGoOn(ReplacedGroup group) {
        group.run(
                context -> {
                    NormalRank rank = new NormalRank(context, group.normal());
                    DispatchPlan plan = rank.plan().build();
                    rank.verify(context.buffer().dispatch(plan));
                    context.meet();
                    if (group.isDead(context)) {
                        context.buffer().close();
                    }
                    group.replace(
                            context,
                            1,
                            _ -> {},
                            fresh -> new NormalRank(fresh, group.normal()).dispatch(),
                            _ -> rank.verify(context.buffer().dispatch(plan)));
                });
    }

    /** A graph from before the death finds the new rank, whose calls are of its own making. */
    @Cases
    @MethodSource("recordingGroups")
    public void graphsGoOn(ReplacedGroup group) {
        group.run(
                context -> {
                    RecordableCalls calls = new RecordableCalls(context, group);
                    calls.prepare();
                    try (Recording recording =
                            backend.record(
                                    context.buffer().communicationStream(), calls::enqueue)) {
                        context.meet();
                        recording.replay();
                        calls.verify();
                        context.meet();
                        if (group.isDead(context)) {
                            context.buffer().close();
                        }
                        group.replace(
                                context,
                                1,
                                _ -> {},
                                fresh -> inPlaceOfTheDead(group, fresh),
                                _ -> calls.replay(recording, SEEDS, SEEDS.size()));
                    }
                });
    }

    private static void inPlaceOfTheDead(ReplacedGroup group, RankContext context) {
        RecordableCalls calls = new RecordableCalls(context, group);
        for (int i = 1; i <= SEEDS.size(); i++) {
            calls.load(SEEDS.get(i % SEEDS.size()));
            calls.enqueue();
            calls.verify();
        }
    }

    /** A rank that failed is known to be gone; its successor is not. */
    @Cases
    @MethodSource("oneGroupOfThreads")
    public void failed(ReplacedGroup group) {
        group.run(
                builder -> builder.maskTimedOutRanks(true),
                context -> {
                    group.calls(context);
                    context.meet();
                    if (group.isDead(context)) {
                        context.communicator().fail(new IOException("disk full"));
                    } else {
                        requireRefused(
                                DeepEpTimeoutException.class,
                                "rank 2 failed",
                                () -> group.callsOfTheRest(context));
                        group.callsOfTheRest(context);
                    }
                    group.replace(context, 1, builder -> builder.maskTimedOutRanks(true));
                });
    }

    /** What the dead rank said of a call that the others had not begun is not taken for news. */
    @Cases
    @MethodSource("oneGroupOfThreads")
    public void aDeadRankWasAhead(ReplacedGroup group) {
        group.run(
                context -> {
                    group.calls(context);
                    context.meet();
                    if (group.isDead(context)) {
                        NormalRank rank =
                                new NormalRank(context, group.normal().without(context.rank()));
                        DispatchPlan lonely = rank.plan().timeout(SHORT).build();
                        caught(DeepEpTimeoutException.class, () -> rank.call(lonely));
                        context.buffer().close();
                    }
                    group.replace(context, 1);
                });
    }

    /** The new rank is lost on its way: the others go on as they were, and take in the next. */
    @Cases
    @MethodSource("oneGroupOfThreads")
    public void lostOnTheWay(ReplacedGroup group) {
        group.run(
                context -> {
                    group.calls(context);
                    context.meet();
                    Communicator lost = Ranks.regroup(context, 1);
                    if (group.isDead(context)) {
                        context.buffer().close();
                        lost.fail(new IOException("disk full"));
                    } else {
                        group.mask(context);
                        requirePeer(2, () -> context.buffer().admit(lost));
                        lost.close();
                        group.callsOfTheRest(context);
                    }
                    group.replace(context, 2);
                });
    }

    /** One that would stay is lost meanwhile: the others go on, and both are replaced. */
    @Cases
    @MethodSource("oneGroupOfThreads")
    public void anotherIsLostMeanwhile(ReplacedGroup group) {
        int second = 1;
        ReplacedGroup both = new ReplacedGroup(backend, group.topology(), Set.of(second, 2));
        group.run(
                context -> {
                    group.calls(context);
                    context.meet();
                    try (Communicator lost = Ranks.regroup(context, 1)) {
                        if (context.rank() == second) {
                            lost.fail(new IOException("disk full"));
                            context.buffer().close();
                        } else if (group.isDead(context)) {
                            context.buffer().close();
                            requirePeer(second, () -> group.join(lost, builder -> {}));
                        } else {
                            group.mask(context);
                            requirePeer(second, () -> context.buffer().admit(lost));
                            both.mask(context);
                            both.callsOfTheRest(context);
                        }
                    }
                    both.replace(context, 2);
                });
    }

    /** A new rank with other options is refused on all ranks, and nothing is lost. */
    @Cases
    @MethodSource("oneGroup")
    public void otherOptions(ReplacedGroup group) {
        group.run(
                context -> {
                    group.lose(context);
                    if (!group.isDead(context)) {
                        group.mask(context);
                    }
                    try (Communicator other = Ranks.regroup(context, 1)) {
                        requireMismatch(
                                group.isDead(context)
                                        ? () -> group.join(other, b -> b.maskTimedOutRanks(true))
                                        : () -> context.buffer().admit(other),
                                "maskTimedOutRanks");
                        other.barrier(Ranks.TIMEOUT);
                    }
                    if (!group.isDead(context)) {
                        assertThat(context.buffer().queryMask())
                                .containsExactly(
                                        IntStream.range(0, group.topology().numRanks())
                                                .map(rank -> group.dead().contains(rank) ? 1 : 0)
                                                .toArray());
                        group.callsOfTheRest(context);
                    }
                    group.replace(context, 2);
                });
    }

    /** Ranks that admit into different buffers, or that open where others join, are told. */
    @Cases
    @MethodSource("oneGroup")
    public void differentCalls(ReplacedGroup group) {
        group.run(
                context -> {
                    try (Buffer second = group.builder(context.communicator()).open();
                            Communicator next = Ranks.regroup(context, 1)) {
                        Buffer mine = context.rank() == 0 ? context.buffer() : second;
                        requireMismatch(() -> mine.admit(next), "the buffer");
                        ThrowingCallable join = () -> group.join(next, b -> {});
                        requireMismatch(join, "no rank has the buffer");
                        ThrowingCallable open = group.builder(next)::open;
                        requireMismatch(context.rank() == 0 ? join : open, "the call");
                        // Nobody is new: the group alone changes.
                        context.buffer().admit(next);
                        group.calls(context);
                        next.barrier(Ranks.TIMEOUT);
                    }
                });
    }

    /** A rank that cannot take part says why, to all; a group that is not one is refused. */
    @Cases
    @MethodSource("oneGroupOfThreads")
    public void unfitGroups(ReplacedGroup group) {
        group.run(
                context -> {
                    Buffer buffer = context.buffer();
                    Communicator next = Ranks.regroup(context, 1);
                    int wrong = context.rank() == 0 ? 1 : context.rank() == 1 ? 0 : context.rank();
                    Communicator swapped =
                            context.shared("swapped", _ -> InProcessGroup.of(next.size()))
                                    .communicator(wrong);
                    requireRefused(
                            wrong == context.rank()
                                    ? RankMismatchException.class
                                    : IllegalArgumentException.class,
                            "must have the same size",
                            () -> buffer.admit(swapped));
                    if (group.isDead(context)) {
                        buffer.close();
                    }
                    requireRefused(
                            group.isDead(context)
                                    ? IllegalStateException.class
                                    : RankMismatchException.class,
                            "the buffer of rank 2 is closed",
                            () -> buffer.admit(next));
                });
    }

    /** Where a network connects the nodes, nobody can be replaced, and calls go on. */
    @Cases
    @MethodSource("groupsOverNetworks")
    public void refusedOverNetworks(EpTopology topology) {
        ReplacedGroup group = new ReplacedGroup(backend, topology, Set.of());
        group.run(
                context -> {
                    try (Communicator next = Ranks.regroup(context, 1)) {
                        requireRefused(
                                UnsupportedOperationException.class,
                                "new ranks cannot be admitted",
                                () -> context.buffer().admit(next));
                        next.barrier(Ranks.TIMEOUT);
                    }
                    group.calls(context);
                });
    }
}
