package io.deepep.testkit.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CallOptions;
import io.deepep.CombineRequest;
import io.deepep.DispatchLayout;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.oracle.LayoutCheck;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Gate;

import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.concurrent.TimeUnit;

/**
 * Normal-mode dispatch in all its forms, each followed by a combine with the handle it gave. Part
 * of {@link NormalConformance}.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class NormalDispatchConformance {
    static final String ALL = "io.deepep.testkit.conformance.NormalShape#all";
    static final String FEW = "io.deepep.testkit.conformance.NormalShape#few";

    /** The backend under test. */
    protected abstract TestBackend backend();

    /**
     * Runs {@code body} on every rank with a buffer whose limits just suffice for {@code world}.
     */
    void run(NormalShape shape, NormalWorld world, Ranks.Body body) {
        Ranks.run(backend(), shape.topology(), builder -> builder.normal(world.limits()), body);
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void roundTrip(NormalShape shape) {
        NormalWorld world = shape.world();
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void masksDuplicatesAndRaggedTokens(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void everythingToOneExpert(NormalShape shape) {
        int last = shape.experts() - 1;
        NormalWorld world =
                NormalWorld.of(
                        shape.spec().withGate(new Gate.AllToOne(last)),
                        shape.hidden(),
                        shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void skewedExperts(NormalShape shape) {
        NormalWorld world =
                NormalWorld.of(
                        shape.spec().withGate(new Gate.Zipf(1.2)), shape.hidden(), shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void nothingAtAll(NormalShape shape) {
        NormalWorld world =
                NormalWorld.of(shape.spec().withMaskedShare(1), shape.hidden(), shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void layoutCounts(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchLayout layout =
                            context.buffer().getDispatchLayout(rank.topkIdx(), shape.experts());
                    layout.event().synchronize();
                    LayoutCheck.check(
                            world.oracle(), context.topology(), layout, context::download);
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void byLayoutAloneAndWithTopk(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchLayout layout =
                            context.buffer()
                                    .getDispatchLayout(
                                            rank.topkIdx(), shape.experts(), CallOptions.async());
                    layout.event().synchronize();
                    NormalDispatchCheck bare = world.check().withoutTopk();
                    rank.combine(rank.dispatch(rank.bare().layout(layout), bare).handle(), bare);
                    NormalDispatchCheck full = world.check();
                    rank.combine(rank.dispatch(rank.request().layout(layout), full).handle(), full);
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void withoutWeights(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        NormalDispatchCheck check = world.check().withoutWeights();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchRequest.Builder request =
                            rank.bare().topk(rank.topkIdx(), null, shape.experts());
                    rank.combine(rank.dispatch(request, check).handle(), check);
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void alignedCounts(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        NormalDispatchCheck check = world.check().aligned(16);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.request().expertAlignment(16), check).handle(),
                            check);
                });
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void worstCase(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        int rows = world.limits().recvCapacity(world.routing().numRanks());
        NormalDispatchCheck check = world.check().worstCase(rows);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.request().numWorstTokens(rows), check).handle(),
                            check);
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void worstCaseJustLargeEnough(NormalShape shape) {
        NormalWorld world = shape.world();
        int rows = 1;
        for (int rank = 0; rank < world.routing().numRanks(); rank++) {
            rows = Math.max(rows, world.oracle().rows(rank).size());
        }
        int most = rows;
        NormalDispatchCheck check = world.check().worstCase(most);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.request().numWorstTokens(most), check).handle(),
                            check);
                });
    }

    @ParameterizedTest
    @MethodSource(ALL)
    public void expanded(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    for (int alignment : new int[] {1, 8, 128}) {
                        NormalDispatchCheck check = world.check().expanded(alignment);
                        DispatchRequest.Builder request =
                                rank.request().expanded(true).expertAlignment(alignment);
                        rank.combine(rank.dispatch(request, check).handle(), check);
                    }
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void expandedWorstCaseWithoutWeights(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        int most = 1;
        for (int rank = 0; rank < world.routing().numRanks(); rank++) {
            most = Math.max(most, world.oracle().expandedRows(rank, 4).size());
        }
        int rows = most + 3;
        NormalDispatchCheck check = world.check().expanded(4).worstCase(rows).withoutWeights();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchRequest.Builder request =
                            rank.bare()
                                    .topk(rank.topkIdx(), null, shape.experts())
                                    .expanded(true)
                                    .expertAlignment(4)
                                    .numWorstTokens(rows);
                    rank.combine(rank.dispatch(request, check).handle(), check);
                });
    }

    /**
     * A handle serves again and again, also when other routings have gone through the buffer
     * meanwhile.
     */
    @ParameterizedTest
    @MethodSource(ALL)
    public void cachedHandle(NormalShape shape) {
        NormalWorld world = shape.world(5);
        NormalWorld other = shape.world(6);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    NormalRank interloper = new NormalRank(context, other);
                    DispatchResult first = rank.dispatch(rank.request(), world.check());
                    NormalDispatchCheck cached = world.check().withoutTopk();
                    DispatchRequest again = rank.bare().handle(first.handle()).build();
                    for (int round = 0; round < 3; round++) {
                        interloper.roundTrip();
                        DispatchResult result =
                                rank.verify(context.buffer().dispatch(again), cached);
                        rank.combine(result.handle(), cached);
                        rank.combine(first.handle(), world.check());
                    }
                });
    }

    /** What was received as a copy survives later dispatches of other requests. */
    @ParameterizedTest
    @MethodSource(FEW)
    public void copyOutlivesOtherDispatches(NormalShape shape) {
        NormalWorld world = shape.world(5);
        NormalWorld other = shape.world(6);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchRequest.Builder request =
                            rank.request().receive(DispatchRequest.Receive.COPY);
                    DispatchResult copy = rank.dispatch(request, world.check());
                    NormalRank interloper = new NormalRank(context, other);
                    interloper.roundTrip();
                    interloper.roundTrip();
                    rank.verify(copy, world.check());
                    rank.combine(copy.handle(), world.check());
                });
    }

    /** Views and copies of every layout of rows have the same content. */
    @ParameterizedTest
    @EnumSource
    public void receivedAs(DispatchRequest.Receive how) {
        NormalShape shape = NormalShape.few().skip(2).findFirst().orElseThrow();
        NormalWorld world = shape.raggedWorld();
        int rows = world.limits().recvCapacity(world.routing().numRanks());
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.dispatch(rank.request().receive(how), world.check());
                    rank.dispatch(
                            rank.request().receive(how).numWorstTokens(rows),
                            world.check().worstCase(rows));
                    rank.dispatch(
                            rank.request().receive(how).expanded(true).expertAlignment(4),
                            world.check().expanded(4));
                });
    }

    @ParameterizedTest
    @MethodSource(FEW)
    public void stridedInputs(NormalShape shape) {
        NormalWorld world = shape.world();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor hostX = world.tokens().get(context.rank()).x();
                    Tensor x = context.upload(HostTensors.withRowGap(hostX, 24));
                    Tensor hostScales = world.tokens().get(context.rank()).scales();
                    Tensor scales =
                            hostScales == null
                                    ? null
                                    : context.upload(HostTensors.columnMajor(hostScales));
                    DispatchRequest.Builder request =
                            DispatchRequest.builder(x)
                                    .scales(scales)
                                    .topk(rank.topkIdx(), rank.weights(), shape.experts());
                    DispatchResult result = rank.dispatch(request, world.check());
                    Tensor outputs =
                            context.upload(
                                    HostTensors.withRowGap(
                                            world.outputs(world.check()).get(context.rank()), 40));
                    rank.verify(
                            context.buffer()
                                    .combine(
                                            CombineRequest.builder(outputs, result.handle())
                                                    .build()),
                            world.check());
                });
    }

    /**
     * The same request object carries new content each time, and its result is the same object
     * where nothing in it changed.
     */
    @ParameterizedTest
    @MethodSource(FEW)
    public void requestReuse(NormalShape shape) {
        NormalWorld world = shape.world(1);
        NormalWorld next = shape.world(2);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    NormalRank later = new NormalRank(context, next);
                    DispatchRequest request = rank.request().build();
                    DispatchResult first = context.buffer().dispatch(request);
                    rank.verify(first, world.check());
                    context.backend().write(next.tokens().get(context.rank()).x(), rank.x());
                    if (rank.scales() != null) {
                        context.backend()
                                .write(next.tokens().get(context.rank()).scales(), rank.scales());
                    }
                    context.backend().write(context.download(later.topkIdx()), rank.topkIdx());
                    context.backend().write(context.download(later.weights()), rank.weights());
                    DispatchResult second = context.buffer().dispatch(request);
                    later.verify(second, next.check());
                    later.combine(second.handle(), next.check());
                    assertThat(second.handle()).isSameAs(first.handle());
                });
    }
}
