package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.Graph;
import io.deepep.Plan;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What the suites of bad input do and expect of both modes. */
public final class Misbehaviour {
    /** The rank that errs. */
    public static final int CULPRIT = 1;

    /**
     * How long to wait for a rank that will not come; others come sooner. Processes that share a
     * GPU take turns on it.
     */
    public static final Duration SHORT = Duration.ofMillis(Ranks.areThreads() ? 300 : 1000);

    /** A buffer's time-out that is enough to open it on a busy machine. */
    public static final Duration BRIEF = Duration.ofSeconds(1);

    private static final Pattern VALUES = Pattern.compile("expected=(\\d+) observed=(\\d+)");

    private Misbehaviour() {}

    /** All ranks meet; the one that errs then comes later than {@link #BRIEF}. */
    public static void beLate(RankContext context) {
        context.meet();
        if (context.isCulprit()) {
            pause(BRIEF.multipliedBy(2));
        }
    }

    /** Does nothing for so long, also if doorbells wake this thread. */
    public static void pause(Duration time) {
        long end = System.nanoTime() + time.toNanos();
        for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** All ranks but the one that errs make the call and give up, after {@link #SHORT}. */
    public static void stayAway(RankContext context, String phase, ThrowingCallable call) {
        context.meet();
        if (!context.isCulprit()) {
            requireTimeout(context.rank(), phase, call);
        }
        context.meet();
    }

    public static <R> void requireRefused(Misuse<R> misuse, R rank) {
        assertThatThrownBy(() -> misuse.call().accept(rank))
                .as(misuse.name())
                .isInstanceOf(misuse.type())
                .hasMessageContaining(misuse.mentions());
    }

    public static void requireForeign(ThrowingCallable call) {
        requireIllegal(call, "handle");
    }

    public static void requireClosed(ThrowingCallable call) {
        requireRefused(IllegalStateException.class, "closed", call);
    }

    public static void requireRefused(
            Class<? extends Throwable> type, String mentions, ThrowingCallable call) {
        assertThatThrownBy(call).isInstanceOf(type).hasMessageContaining(mentions);
    }

    /** The call is refused because of an argument. */
    public static void requireIllegal(ThrowingCallable call, String... mentions) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(mentions);
    }

    /** What a call of every rank concerned throws. */
    public static <T extends Throwable> T caught(Class<T> type, ThrowingCallable call) {
        T error = catchThrowableOfType(type, call);
        assertThat(error).as("a %s on every rank", type.getSimpleName()).isNotNull();
        return error;
    }

    public static RankMismatchException requireMismatch(ThrowingCallable call, String... mentions) {
        RankMismatchException error = caught(RankMismatchException.class, call);
        assertThat(error).hasMessageContainingAll(mentions);
        return error;
    }

    public static void requireRouting(ThrowingCallable call, String... mentions) {
        requireRouting(CULPRIT, call, mentions);
    }

    /** The call fails because of what {@code culprit} gave. */
    public static void requireRouting(int culprit, ThrowingCallable call, String... mentions) {
        RoutingException error = caught(RoutingException.class, call);
        assertThat(error.rank()).isEqualTo(culprit);
        assertThat(error).hasMessageContaining("rank " + culprit).hasMessageContainingAll(mentions);
    }

    /** A dispatch with these indices fails because of {@code culprit}, again too; others work. */
    public static void requireBadIndices(
            ExchangeRank<?, ?> rank, Tensor idx, int culprit, String mentions) {
        Plan plan = rank.planOf(idx);
        requireRouting(culprit, () -> rank.call(plan), mentions);
        requireRouting(culprit, () -> rank.call(plan), mentions);
        rank.roundTrip();
    }

    public static void requireTooMany(ThrowingCallable call, int rank, int needed, int capacity) {
        CapacityExceededException error = caught(CapacityExceededException.class, call);
        assertThat(error.rank()).isEqualTo(rank);
        assertThat(error.needed()).isEqualTo(needed);
        assertThat(error.capacity()).isEqualTo(capacity);
    }

    /** The call fails because it waits for {@code peer}. */
    public static DeepEpTimeoutException requirePeer(int peer, ThrowingCallable call) {
        DeepEpTimeoutException error = caught(DeepEpTimeoutException.class, call);
        assertThat(error.peer()).as(error.getMessage()).isEqualTo(peer);
        return error;
    }

    public static void requireTimeout(int rank, String phase, ThrowingCallable call) {
        DeepEpTimeoutException error = requirePeer(CULPRIT, call);
        assertThat(error.rank()).isEqualTo(rank);
        assertThat(error.phase()).contains(phase);
        requireWaited(error, SHORT);
        assertThat(error.isFatal()).isFalse();
    }

    /**
     * The error says that the time-out was over, and that what was seen is of before what was
     * waited for; if another rank told before, or an earlier call of this one had found out, it
     * says that instead.
     */
    public static void requireWaited(DeepEpTimeoutException error, Duration timeout) {
        if (error.phase().endsWith(" gave up waiting for it")
                || error.getMessage().contains(" left the call with an error of its own")
                || error.phase().endsWith(", having given up on it in an earlier call")) {
            assertThat(error.getMessage()).doesNotContain("waited more than");
        } else {
            assertThat(error.getMessage())
                    .containsPattern(
                            "waited more than [0-9.]+ m?s for rank " + error.peer() + " in ");
            assertThat(error.waited()).isEqualTo(timeout);
            Matcher values = VALUES.matcher(error.getMessage());
            assertThat(values.find()).as(error.getMessage()).isTrue();
            assertThat(Long.parseLong(values.group(2)))
                    .as(error.getMessage())
                    .isBetween(0L, Long.parseLong(values.group(1)) - 1);
        }
    }

    /** The call waits on the CPU or allocates, so that a graph cannot hold it. */
    public static void requireUncapturable(RankContext context, String mention, Runnable call) {
        Stream stream = context.buffer().communicationStream();
        ThrowingCallable capture = () -> Graph.capture(stream, call);
        requireRefused(IllegalStateException.class, mention, capture);
    }

    /** After a timeout a buffer refuses further calls. */
    public static void requireFailed(ThrowingCallable call) {
        requireRefused(IllegalStateException.class, "failed", call);
    }

    /**
     * Runs {@code act} over a buffer with a short timeout, of which the rank that errs stays away
     * until the others have given up. Other buffers of the group must still work afterwards.
     */
    public static void withoutOneRank(
            RankContext context, RankGroup group, Consumer<RankContext> act) {
        try (Buffer hasty = context.builder(group).timeout(SHORT).open()) {
            act.accept(context.with(hasty));
            context.meet();
        }
    }

    /** A way to leave a group. */
    public static void fail(Communicator communicator) {
        communicator.fail(new IOException("disk full"));
    }

    /**
     * All meet; then {@code leaving} leaves the group, and stays there until the others have done
     * {@code act}. For ranks that are threads.
     */
    public static void whileGone(
            RankContext context, int leaving, Consumer<Communicator> departure, Ranks.Body act)
            throws Exception {
        CountDownLatch others =
                context.shared(
                        "others", _ -> new CountDownLatch(context.topology().numRanks() - 1));
        context.meet();
        if (context.rank() == leaving) {
            departure.accept(context.communicator());
            others.await();
            return;
        }
        try {
            act.run(context);
        } finally {
            others.countDown();
        }
    }
}
