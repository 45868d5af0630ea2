package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.Buffer;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Word;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.conformance.normal.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;

/**
 * A rank opens a combine and then does nothing more, as if it were killed there: all others name
 * it, also those whose rings have no room because their readers wait for it too.
 *
 * <p>The rank does not make the call at all. Its header of the combine before the last lies at its
 * peers still, as headers alternate between two places, and these have it count for this call.
 */
@BackendSuite
record SilentRankTest(TestBackend backend) {
    /** Of the dispatch and three combines; the headers of the first and the third share a place. */
    private static final int SILENT_EPOCH = Word.FIRST_EPOCH + 3;

    /** Rings with far fewer slots than a rank has tokens. */
    private static final Config SHORT_RINGS = new Config(4, 1, 2);

    @Cases
    @GroupSource({"2, 1", "3, 1", "4, 1", "5, 1"})
    void inACombine(int nodes, int ranksPerNode) {
        int culprit = nodes - 1;
        RoutingSpec spec = RoutingSpec.of(nodes, 96, 4 * nodes, 4);
        NormalWorld world = NormalWorld.of(spec, 128, DType.BF16);
        Ranks.run(
                backend,
                Ranks.topology(nodes, ranksPerNode),
                builder ->
                        builder.normal(world.limits())
                                .dispatchConfig(SHORT_RINGS)
                                .combineConfig(SHORT_RINGS)
                                .timeout(Duration.ofSeconds(2)),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchHandle handle = rank.dispatch(rank.plan(), world.check()).handle();
                    rank.combine(handle, world.check());
                    rank.combine(handle, world.check());
                    context.communicator().barrier(Ranks.TIMEOUT);
                    if (context.rank() != culprit) {
                        openFor(context, culprit);
                        DeepEpTimeoutException failure =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> rank.combine(handle, world.check()));
                        assertThat(failure).as("a timeout on rank %d", context.rank()).isNotNull();
                        assertThat(failure.phase()).contains("combine.rows");
                        assertThat(failure.peer()).as(failure.getMessage()).isEqualTo(culprit);
                    }
                    context.communicator().barrier(Ranks.TIMEOUT);
                });
    }

    /** Here the rank seems to have opened the call. */
    private static void openFor(RankContext context, int silent) {
        Buffer buffer = context.buffer();
        NormalRdmaLayout layout =
                NormalRdmaLayout.of(
                        buffer.options().dispatchConfig(),
                        buffer.options().normal(),
                        context.topology());
        long flag = layout.headerFlags().at(silent, SILENT_EPOCH & 1);
        Tensor word =
                context.backend().download(buffer.getLocalBufferTensor(DType.I64, 1, flag, true));
        word.setLong(Word.of(SILENT_EPOCH, 0), 0);
        context.backend().write(word, buffer.getLocalBufferTensor(DType.I64, 1, flag, true));
    }
}
