package io.deepep.testkit.conformance.replacement;

import static io.deepep.testkit.conformance.Misbehaviour.caught;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.Misbehaviour.requirePeer;
import static io.deepep.testkit.conformance.Misbehaviour.requireRefused;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Graph;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
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
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** New ranks that take the places of dead ones in buffers that stay open. */
@BackendSuite
public record ReplacementConformance(TestBackend backend) {
    private static final Duration SHORT = Duration.ofMillis(300);
    private static final List<Long> SEEDS = List.of(1L, 2L, 3L);

    static Stream<ReplacedGroup> groups(TestBackend backend) {
        return Stream.of(
                        ReplacedGroup.of(backend, 1, 4, 2),
                        ReplacedGroup.of(backend, 1, 3, 0),
                        ReplacedGroup.of(backend, 1, 2, 1),
                        ReplacedGroup.of(backend, 1, 4, 0, 3),
                        ReplacedGroup.of(backend, 1, 10, 9),
                        ReplacedGroup.of(backend, 2, 2, 2),
                        ReplacedGroup.of(backend, 2, 2, 0, 1))
                .filter(group -> Ranks.fit(backend, group.topology()))
                .filter(group -> isReplaceable(backend, group.topology()));
    }

    static Stream<ReplacedGroup> oneGroup(TestBackend backend) {
        return groups(backend).limit(1);
    }

    static Stream<ReplacedGroup> oneMaskingGroup(TestBackend backend) {
        return oneGroup(backend).map(ReplacedGroup::masking);
    }

    static Stream<ReplacedGroup> groupsOverNetworks(TestBackend backend) {
        return Stream.of(ReplacedGroup.of(backend, 2, 2))
                .filter(group -> Ranks.fit(backend, group.topology()))
                .filter(group -> !isReplaceable(backend, group.topology()));
    }

    static Stream<ReplacedGroup> graphGroups(TestBackend backend) {
        return groups(backend).filter(group -> backend.hasGraphs());
    }

    private static boolean isReplaceable(TestBackend backend, EpTopology topology) {
        return !topology.isInternode() || backend.outlivesRanks();
    }

    /** Masked, left out, and replaced, by a rank that is replaced itself. */
    @Cases(from = "groups")
    public void replaced(ReplacedGroup group, RankContext context) throws Exception {
        group.lose(context);
        if (!group.isDead(context)) {
            group.mask(context);
            group.callsOfTheRest(context);
        }
        group.replace(context, 1);
        group.replace(context, 2);
    }

    /** A plan from before the death finds the new rank. */
    @Cases(from = "oneGroup")
    public void plansGoOn(ReplacedGroup group, RankContext context) throws Exception {
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
                fresh -> new NormalRank(fresh, group.normal()).dispatch(),
                _ -> rank.verify(context.buffer().dispatch(plan)));
    }

    /** A graph from before the death finds the new rank, whose calls are of its own making. */
    @Cases(from = "graphGroups")
    public void graphsGoOn(ReplacedGroup group, RankContext context) throws Exception {
        CapturableCalls calls = new CapturableCalls(context, group);
        calls.prepare();
        try (Graph graph = calls.capture(context, context.buffer().communicationStream())) {
            graph.replay();
            calls.verify();
            context.meet();
            if (group.isDead(context)) {
                context.buffer().close();
            }
            group.replace(
                    context,
                    1,
                    fresh -> inPlaceOfTheDead(group, fresh),
                    _ -> calls.replay(graph, SEEDS, SEEDS.size()));
        }
    }

    private static void inPlaceOfTheDead(ReplacedGroup group, RankContext context) {
        CapturableCalls calls = new CapturableCalls(context, group);
        for (int i = 1; i <= SEEDS.size(); i++) {
            calls.load(SEEDS.get(i % SEEDS.size()));
            calls.enqueue();
            calls.verify();
        }
    }

    /** A rank that failed is known to be gone; its successor is not. */
    @Cases(from = "oneMaskingGroup", ofThreads = true)
    public void failed(ReplacedGroup group, RankContext context) throws Exception {
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
        group.replace(context, 1);
    }

    /** What the dead rank said of a call that the others had not begun is not taken for news. */
    @Cases(from = "oneGroup", ofThreads = true)
    public void aDeadRankWasAhead(ReplacedGroup group, RankContext context) throws Exception {
        group.calls(context);
        context.meet();
        if (group.isDead(context)) {
            NormalRank rank = new NormalRank(context, group.normal().without(context.rank()));
            DispatchPlan lonely = rank.plan().timeout(SHORT).build();
            caught(DeepEpTimeoutException.class, () -> rank.call(lonely));
            context.buffer().close();
        }
        group.replace(context, 1);
    }

    /** The new rank is lost on its way: the others go on as they were, and take in the next. */
    @Cases(from = "oneGroup", ofThreads = true)
    public void lostOnTheWay(ReplacedGroup group, RankContext context) throws Exception {
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
    }

    /** One that would stay is lost meanwhile: the others go on, and both are replaced. */
    @Cases(from = "oneGroup", ofThreads = true)
    public void anotherIsLostMeanwhile(ReplacedGroup group, RankContext context) throws Exception {
        int second = 1;
        ReplacedGroup both = new ReplacedGroup(backend, group.topology(), Set.of(second, 2), false);
        group.calls(context);
        context.meet();
        try (Communicator lost = Ranks.regroup(context, 1)) {
            if (context.rank() == second) {
                lost.fail(new IOException("disk full"));
                context.buffer().close();
            } else if (group.isDead(context)) {
                context.buffer().close();
                requirePeer(second, () -> group.join(lost));
            } else {
                group.mask(context);
                requirePeer(second, () -> context.buffer().admit(lost));
                both.mask(context);
                both.callsOfTheRest(context);
            }
        }
        both.replace(context, 2);
    }

    /** A new rank with other options is refused on all ranks, and nothing is lost. */
    @Cases(from = "oneGroup")
    public void otherOptions(ReplacedGroup group, RankContext context) throws Exception {
        group.lose(context);
        if (!group.isDead(context)) {
            group.mask(context);
        }
        try (Communicator other = Ranks.regroup(context, 1)) {
            requireMismatch(
                    group.isDead(context)
                            ? () -> group.masking().join(other)
                            : () -> context.buffer().admit(other),
                    "maskTimedOutRanks");
            other.barrier(Ranks.TIMEOUT);
        }
        if (!group.isDead(context)) {
            context.requireMasked(group.dead());
            group.callsOfTheRest(context);
        }
        group.replace(context, 2);
    }

    /** Ranks that admit into different buffers, or that open where others join, are told. */
    @Cases(from = "oneGroup")
    public void differentCalls(ReplacedGroup group, RankContext context) throws Exception {
        try (Buffer second = group.builder(context.communicator()).open();
                Communicator next = Ranks.regroup(context, 1)) {
            Buffer mine = context.rank() == 0 ? context.buffer() : second;
            requireMismatch(() -> mine.admit(next), "the buffer");
            ThrowingCallable join = () -> group.join(next);
            requireMismatch(join, "no rank has the buffer");
            ThrowingCallable open = group.builder(next)::open;
            requireMismatch(context.rank() == 0 ? join : open, "the call");
            // Nobody is new: the group alone changes.
            context.buffer().admit(next);
            group.calls(context);
            next.barrier(Ranks.TIMEOUT);
        }
    }

    /** A rank that cannot take part says why, to all; a group that is not one is refused. */
    @Cases(from = "oneGroup", ofThreads = true)
    public void unfitGroups(ReplacedGroup group, RankContext context) {
        Buffer buffer = context.buffer();
        Communicator next = Ranks.regroup(context, 1);
        int wrong = context.rank() == 0 ? 1 : context.rank() == 1 ? 0 : context.rank();
        Communicator swapped =
                context.shared("swapped", _ -> InProcessGroup.of(next.size())).communicator(wrong);
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
                group.isDead(context) ? IllegalStateException.class : RankMismatchException.class,
                "the buffer of rank 2 is closed",
                () -> buffer.admit(next));
    }

    /** Where a network connects the nodes, nobody can be replaced, and calls go on. */
    @Cases(from = "groupsOverNetworks")
    public void refusedOverNetworks(ReplacedGroup group, RankContext context) throws Exception {
        try (Communicator next = Ranks.regroup(context, 1)) {
            requireRefused(
                    UnsupportedOperationException.class,
                    "new ranks cannot be admitted",
                    () -> context.buffer().admit(next));
            next.barrier(Ranks.TIMEOUT);
        }
        group.calls(context);
    }
}
