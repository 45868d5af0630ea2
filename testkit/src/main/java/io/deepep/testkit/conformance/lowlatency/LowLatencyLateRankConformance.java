package io.deepep.testkit.conformance.lowlatency;

import io.deepep.Buffer;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.LowLatencyWorld;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/**
 * A rank that the others have masked stores the rows of its call late, while they are between the
 * halves of the second next call, whose slots have the same parity: what it stores must not be
 * taken for anybody else's.
 */
@BackendSuite
public record LowLatencyLateRankConformance(TestBackend backend) {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    /** A way to combine, and to compare what it returns. */
    enum Home {
        ROWS(false, CombineFormat.BF16),
        LOG_FMT(false, CombineFormat.LOGFMT),
        FP8(false, CombineFormat.FP8),
        SUMS(true, CombineFormat.BF16),
        LOG_FMT_SUMS(true, CombineFormat.LOGFMT),
        FP8_SUMS(true, CombineFormat.FP8);

        private final boolean preReduced;
        private final CombineFormat format;

        Home(boolean preReduced, CombineFormat format) {
            this.preReduced = preReduced;
            this.format = format;
        }

        LowLatencyDispatchResult dispatch(LowLatencyRank rank) {
            return preReduced ? rank.dispatchWeighted(BF16) : rank.dispatch(BF16);
        }

        LowLatencyCombinePlan.Builder request(LowLatencyRank rank, LowLatencyHandle handle) {
            return (preReduced ? rank.preReduced(handle) : rank.home(handle)).format(format);
        }

        void verify(LowLatencyRank rank, LowLatencyCombineResult result) {
            rank.verify(result, format, preReduced);
        }

        void combine(LowLatencyRank rank, LowLatencyHandle handle) {
            rank.combine(request(rank, handle));
        }

        /** The send half, which has left when this returns. */
        LowLatencyCombineResult send(LowLatencyRank rank, LowLatencyHandle handle) {
            LowLatencyCombineResult result =
                    rank.context()
                            .buffer()
                            .lowLatencyCombine(request(rank, handle).receiveHook(true).build());
            result.event().synchronize();
            return result;
        }
    }

    static Stream<Arguments> homes(TestBackend backend) {
        return LowLatencyShape.few(backend)
                .flatMap(shape -> Stream.of(Home.values()).map(home -> Arguments.of(shape, home)));
    }

    /**
     * What one rank does: a pair of each of three exchanges, of which the late rank has no part.
     */
    private static final class Exchanges {
        final RankContext context;
        final LowLatencyShape shape;
        final int late;
        final LowLatencyRank whole;

        Exchanges(RankContext context, LowLatencyShape shape) {
            this.context = context;
            this.shape = shape;
            this.late = shape.topology().numRanks() - 1;
            this.whole = shape.rank(context, 81);
        }

        boolean isLate() {
            return context.rank() == late;
        }

        /** Another exchange, without the late rank. */
        LowLatencyRank without(long seed) {
            return shape.rest(context, Set.of(late), seed);
        }

        /** The first exchange, without what the late rank owes. */
        LowLatencyRank owing() {
            return new LowLatencyRank(
                    context,
                    LowLatencyWorld.of(
                            shape.spec().withSeed(81),
                            shape.limits(),
                            routing -> routing.without((src, rank) -> rank == late)));
        }

        /** Takes the late rank back. */
        void rejoin() {
            context.meet();
            context.buffer().rejoin();
            whole.roundTrip(BF16);
        }
    }

    @Cases(from = "homes")
    public void rowsOfALateCombine(LowLatencyShape shape, Home home, RankContext context) {
        Exchanges all = new Exchanges(context, shape);
        all.whole.roundTrip(BF16);
        all.whole.roundTrip(BF16);
        LowLatencyHandle handle = home.dispatch(all.whole).handle();
        if (all.isLate()) {
            context.meet();
            home.send(all.whole, handle);
            context.meet();
        } else {
            context.buffer().updateMask(all.late, true);
            home.combine(all.owing(), handle);
            LowLatencyRank second = all.without(82);
            home.combine(second, home.dispatch(second).handle());
            LowLatencyRank third = all.without(83);
            LowLatencyCombineResult sent = home.send(third, home.dispatch(third).handle());
            context.meet();
            // Now the late rank stores.
            context.meet();
            sent.receiveHook().run();
            home.verify(third, sent);
        }
        all.rejoin();
    }

    @Cases(from = "few")
    public void rowsOfALateDispatch(LowLatencyShape shape, RankContext context) {
        Exchanges all = new Exchanges(context, shape);
        Buffer buffer = context.buffer();
        all.whole.roundTrip(BF16);
        all.whole.roundTrip(BF16);
        LowLatencyRank third = all.isLate() ? all.whole : all.without(83);
        if (!all.isLate()) {
            buffer.updateMask(all.late, true);
            all.without(81).roundTrip(BF16);
            all.without(82).roundTrip(BF16);
        } else {
            context.meet();
        }
        LowLatencyDispatchResult sent =
                buffer.lowLatencyDispatch(third.plan(BF16).receiveHook(true).build());
        sent.event().synchronize();
        context.meet();
        if (!all.isLate()) {
            // Now the late rank stores.
            context.meet();
            sent.receiveHook().run();
            third.verify(sent, BF16);
            third.combine(sent.handle());
        }
        all.rejoin();
    }
}
