package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.testkit.TestBackend;
import java.time.Duration;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What the suites of bad input do and expect of both modes. */
public final class Misbehaviour {
    /** The rank that errs. */
    public static final int CULPRIT = 1;

    /** How long to wait for a rank that will not come. */
    public static final Duration SHORT = Duration.ofMillis(300);

    private Misbehaviour() {}

    public static <R> void requireRefused(Misuse<R> misuse, R rank) {
        assertThatThrownBy(() -> misuse.call().make(rank))
                .as(misuse.name())
                .isInstanceOf(misuse.type())
                .hasMessageContaining(misuse.mentions());
    }

    public static void requireForeign(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle");
    }

    public static void requireClosed(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
    }

    public static void requireMismatch(ThrowingCallable call, String... mentions) {
        RankMismatchException error = catchThrowableOfType(RankMismatchException.class, call);
        assertThat(error).as("a RankMismatchException on every rank").isNotNull();
        assertThat(error).hasMessageContainingAll(mentions);
    }

    public static void requireRouting(ThrowingCallable call, String... mentions) {
        RoutingException error = catchThrowableOfType(RoutingException.class, call);
        assertThat(error).as("a RoutingException on every rank").isNotNull();
        assertThat(error.rank()).isEqualTo(CULPRIT);
        assertThat(error).hasMessageContaining("rank " + CULPRIT).hasMessageContainingAll(mentions);
    }

    public static void requireTimeout(int rank, String phase, ThrowingCallable call) {
        DeepEpTimeoutException error = catchThrowableOfType(DeepEpTimeoutException.class, call);
        assertThat(error).as("a DeepEpTimeoutException on rank " + rank).isNotNull();
        assertThat(error.peer()).as(error.getMessage()).isEqualTo(CULPRIT);
        assertThat(error.rank()).isEqualTo(rank);
        assertThat(error.phase()).contains(phase);
        assertThat(error).hasMessageContaining("waited 0.3 s for rank " + CULPRIT);
        assertThat(error.isFatal()).isFalse();
    }

    /** After a timeout a buffer refuses further calls. */
    public static void requireFailed(ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("failed");
    }

    /** What the ranks do of which one does not come; {@code meet} waits for all of them. */
    public interface Act {
        void run(RankContext context, Runnable meet);
    }

    /**
     * Runs {@code act} on all ranks but one, over a buffer with a short timeout; another buffer of
     * the group must still work afterwards.
     */
    public static void withoutOneRank(
            TestBackend backend,
            EpTopology topology,
            Consumer<Buffer.Builder> modes,
            Act act,
            Ranks.Body afterwards) {
        Ranks.run(
                backend,
                topology,
                modes,
                context -> {
                    Communicator communicator = context.communicator();
                    Buffer.Builder builder = Ranks.builder(backend, communicator, topology);
                    modes.accept(builder);
                    try (Buffer hasty = builder.timeout(SHORT).open()) {
                        act.run(context.with(hasty), () -> communicator.barrier(Ranks.TIMEOUT));
                        // The absent rank stays away until the others have given up.
                        communicator.barrier(Ranks.TIMEOUT);
                    }
                    afterwards.run(context);
                });
    }

    /** How ranks fill in their options. */
    public interface Options {
        void fill(Buffer.Builder builder, boolean culprit);
    }

    /**
     * Ranks that want different buffers all learn it; afterwards the group can open one, given to
     * {@code afterwards}.
     */
    public static void requireOpenMismatch(
            TestBackend backend,
            Options options,
            Consumer<Buffer.Builder> good,
            Ranks.Body afterwards,
            String... mentions) {
        EpTopology topology = Ranks.four(backend);
        Ranks.runBare(
                backend,
                topology,
                communicator -> {
                    Buffer.Builder builder = Ranks.builder(backend, communicator, topology);
                    options.fill(builder, communicator.rank() == CULPRIT);
                    RankMismatchException error =
                            catchThrowableOfType(RankMismatchException.class, builder::open);
                    assertThat(error).as("a RankMismatchException on every rank").isNotNull();
                    assertThat(error)
                            .hasMessageContainingAll(mentions)
                            .hasMessageContaining("rank 1");
                    Buffer.Builder agreed = Ranks.builder(backend, communicator, topology);
                    good.accept(agreed);
                    try (Buffer buffer = agreed.open()) {
                        afterwards.run(new RankContext(backend, communicator, buffer));
                    }
                });
    }
}
