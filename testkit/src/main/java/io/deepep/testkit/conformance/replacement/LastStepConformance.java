package io.deepep.testkit.conformance.replacement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import java.io.IOException;
import java.util.Set;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A new rank that dies when it meets those that stay for the last time, so that some of these may
 * have taken it in: what each gets, and that another new group mends it.
 */
@BackendSuite
public record LastStepConformance(TestBackend backend) {
    private static final int DEAD = 2;

    static Stream<ReplacedGroup> groups(TestBackend backend) {
        return Stream.of(ReplacedGroup.of(backend, 1, 4, DEAD).masking())
                .filter(group -> Ranks.fit(backend, group.topology()));
    }

    /**
     * All lose a rank that had been replaced once, so that the number of meetings is known. The new
     * rank dies before it comes to its last meeting, or if it {@code arrives}, right after.
     *
     * @param others what each that stays does, given the number of the last meeting
     */
    private static void run(
            ReplacedGroup group, RankContext context, boolean arrives, IntConsumer others)
            throws Exception {
        group.lose(context);
        int last = replaceOnce(group, context);
        if (group.isDead(context)) {
            die(group, context, last, arrives);
        } else {
            others.accept(last);
        }
        group.replace(context, 3);
    }

    private static int replaceOnce(ReplacedGroup group, RankContext context) {
        FragileGroup first = fragile(context, 1, 0, false, () -> null);
        int last;
        if (group.isDead(context)) {
            Buffer buffer = group.join(first.communicator());
            last = first.numMeetings();
            context.meet();
            buffer.close();
        } else {
            context.buffer().admit(first.communicator());
            last = first.numMeetings();
            context.meet();
            group.mask(context);
        }
        context.meet();
        return last;
    }

    private static FragileGroup fragile(
            RankContext context,
            int number,
            int fatal,
            boolean arrives,
            Supplier<RuntimeException> blow) {
        return new FragileGroup(Ranks.regroup(context, number), fatal, arrives, blow);
    }

    private static void die(
            ReplacedGroup group, RankContext context, int lastMeeting, boolean arrives) {
        Communicator lost = Ranks.regroup(context, 2);
        FragileGroup dying =
                new FragileGroup(
                        lost,
                        lastMeeting,
                        arrives,
                        () -> {
                            lost.fail(new IOException("disk full"));
                            return new IllegalStateException("killed");
                        });
        assertThatThrownBy(() -> group.join(dying.communicator()).close()).hasMessage("killed");
    }

    /** Nobody has taken it in: all learn whom they lack, and go on as they were. */
    @Cases(from = "groups", ofThreads = true)
    public void before(ReplacedGroup group, RankContext context) throws Exception {
        run(
                group,
                context,
                false,
                lastMeeting -> {
                    Communicator lost = Ranks.regroup(context, 2);
                    requireLost(catchThrowable(() -> context.buffer().admit(lost)));
                    context.requireMasked(Set.of(DEAD));
                    group.callsOfTheRest(context);
                });
    }

    /** All have taken it in: their next call names it, and the one after goes on without. */
    @Cases(from = "groups", ofThreads = true)
    public void after(ReplacedGroup group, RankContext context) throws Exception {
        run(
                group,
                context,
                true,
                lastMeeting -> {
                    context.buffer().admit(Ranks.regroup(context, 2));
                    context.requireMasked(Set.of());
                    requireLost(nextCall(group, context));
                    group.callsOfTheRest(context);
                });
    }

    /**
     * One rank learns of the death first and has not taken it in, the others have: the next call
     * fails on all, by the name of the dead or by the masks that differ.
     */
    @Cases(from = "groups", ofThreads = true)
    public void between(ReplacedGroup group, RankContext context) throws Exception {
        run(
                group,
                context,
                true,
                lastMeeting -> {
                    boolean learnsFirst = context.rank() == 0;
                    FragileGroup lost =
                            fragile(
                                    context,
                                    2,
                                    learnsFirst ? lastMeeting : 0,
                                    true,
                                    () -> timeout(context.rank()));
                    Communicator end = lost.communicator();
                    Throwable failed = catchThrowable(() -> context.buffer().admit(end));
                    if (learnsFirst) {
                        requireLost(failed);
                        context.requireMasked(Set.of(DEAD));
                    } else {
                        assertThat(failed).isNull();
                        context.requireMasked(Set.of());
                    }
                    Throwable next = nextCall(group, context);
                    if (next instanceof RankMismatchException) {
                        assertThat(next).hasMessageContaining("masked ranks");
                    } else {
                        requireLost(next);
                    }
                });
    }

    private static DeepEpTimeoutException timeout(int rank) {
        return new DeepEpTimeoutException(rank, DEAD, "barrier", 4, 3, 1);
    }

    /** What a call of all ranks fails with. */
    private static Throwable nextCall(ReplacedGroup group, RankContext context) {
        NormalRank rank = new NormalRank(context, group.normal());
        return catchThrowable(() -> rank.call(rank.plan().build()));
    }

    private static void requireLost(Throwable failure) {
        assertThat(failure).isInstanceOf(DeepEpTimeoutException.class);
        assertThat(((DeepEpTimeoutException) failure).peer())
                .as(failure.getMessage())
                .isEqualTo(DEAD);
    }
}
