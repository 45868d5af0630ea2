package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.testkit.CardCounts;
import io.deepep.testkit.CardFolder;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.function.IntUnaryOperator;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What kernels ask of the cards for a row, as the card in software counts it. */
class IbgdaCountsTest {
    private static final LowLatencyShape SHAPE = new LowLatencyShape(2, 2, 16, 512, 8, 32);

    private static final Routing ROUTING = SHAPE.spec().generate();

    /** That one write of dispatch brings. */
    private static final int DISPATCH_BATCH_ROWS = 16;

    /** That one write of combine brings, in this shape. */
    private static final int COMBINE_BATCH_ROWS = 8;

    /** By which a rank tells another of another node what it has received. */
    private static final int ACK_WORDS = 2;

    private static final Path DOCUMENT = Path.of("../docs/ibgda.md");

    private static CardFolder folder;

    @BeforeAll
    static void requireCard() {
        folder = CardCases.requireCard();
    }

    private interface Calls {
        Runnable prepare(RankContext context);
    }

    /** What the second part of {@code calls}, made by all ranks, adds to the counts. */
    private static CardCounts count(
            EpTopology topology,
            Consumer<Buffer.Builder> limits,
            Calls calls,
            Predicate<CardCounts> complete) {
        CardCounts[] counted = new CardCounts[1];
        Ranks.run(
                BufferTestBackends.CUDA_IBGDA,
                topology,
                limits,
                context -> {
                    Runnable measured = calls.prepare(context);
                    context.meet();
                    CardCounts before = context.rank() == 0 ? CardCounts.settled(folder) : null;
                    context.meet();
                    measured.run();
                    context.meet();
                    if (context.rank() == 0) {
                        counted[0] = CardCounts.settledSince(folder, before, complete);
                    }
                    context.meet();
                });
        return counted[0];
    }

    private static boolean isRemote(EpTopology topology, int rank, int peer) {
        return topology.withRank(rank).rdmaRank() != topology.withRank(peer).rdmaRank();
    }

    /** Pairs of a token and a rank of another node that it goes to. */
    private static long rowsSent(Routing routing, EpTopology topology) {
        return acrossNodes(topology, routing.tokensPerRank(), rows -> rows);
    }

    /** Pairs of a token and an expert of another node. */
    private static long selections(Routing routing, EpTopology topology) {
        return acrossNodes(topology, routing.selectionsPerRank(), rows -> rows);
    }

    /** The sum over pairs of ranks of two nodes, of something for what one sends to the other. */
    private static long acrossNodes(EpTopology topology, int[][] sent, IntUnaryOperator each) {
        long sum = 0;
        for (int rank = 0; rank < sent.length; rank++) {
            for (int peer = 0; peer < sent.length; peer++) {
                sum += isRemote(topology, rank, peer) ? each.applyAsInt(sent[rank][peer]) : 0;
            }
        }
        return sum;
    }

    /**
     * DeepEP's low-latency calls: one entry for each selection, and one for each expert's count.
     */
    private static long entriesOfDeepEp(Routing routing, EpTopology topology) {
        int remoteRanks = topology.numRanks() - topology.numNvlRanks();
        long experts = (long) topology.numRanks() * remoteRanks * routing.numLocalExperts();
        return selections(routing, topology) + experts;
    }

    /**
     * A low-latency call: each header has one write.
     *
     * @param rows what crosses
     * @param batches that bring them, each by a write and a signal
     */
    private static void requireLowLatency(String call, long rows, long batches, Calls calls)
            throws IOException {
        EpTopology topology = SHAPE.topology();
        int remoteRanks = topology.numRanks() - topology.numNvlRanks();
        long pairs = (long) topology.numRanks() * remoteRanks;
        long signals = batches + ACK_WORDS * pairs;
        long deepEp = entriesOfDeepEp(ROUTING, topology);
        CardCounts counts = count(topology, SHAPE::limit, calls, all -> all.signals() >= signals);
        assertThat(counts.signals()).isEqualTo(signals);
        assertThat(counts.writes()).isEqualTo(batches + pairs);
        assertThat(counts.entries()).isLessThanOrEqualTo(deepEp);
        // A submission asks for one completion, and rings at most once.
        assertThat(counts.completions()).isBetween(1L, counts.writes() + pairs);
        assertThat(counts.doorbells()).isBetween(1L, counts.completions());
        if (Files.exists(DOCUMENT)) { // a bundle has none
            assertThat(Files.readString(DOCUMENT))
                    .contains(
                            "| %s | %d | %d | %d | %d |"
                                    .formatted(
                                            call, rows, counts.writes(), counts.signals(), deepEp));
        }
    }

    @Test
    void lowLatencyDispatch() throws IOException {
        requireLowLatency(
                "dispatch",
                rowsSent(ROUTING, SHAPE.topology()),
                acrossNodes(
                        SHAPE.topology(),
                        ROUTING.tokensPerRank(),
                        each -> Math.ceilDiv(each, DISPATCH_BATCH_ROWS)),
                context -> {
                    LowLatencyRank rank = rank(context);
                    return () -> rank.dispatch(LowLatencyFormat.BF16);
                });
    }

    @Test
    void lowLatencyCombine() throws IOException {
        requireLowLatency(
                "combine",
                selections(ROUTING, SHAPE.topology()),
                acrossNodes(
                        SHAPE.topology(),
                        ROUTING.selectionsPerRank(),
                        each -> Math.ceilDiv(each, COMBINE_BATCH_ROWS)),
                context -> {
                    LowLatencyRank rank = rank(context);
                    LowLatencyHandle handle = rank.dispatch(LowLatencyFormat.BF16).handle();
                    return () -> rank.combine(handle);
                });
    }

    private static LowLatencyRank rank(RankContext context) {
        return new LowLatencyRank(context, SHAPE.world(SHAPE.spec()));
    }

    /** At most a write and a signal for each row that crosses, and a signal that it was taken. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void normal(boolean combine) {
        EpTopology topology = Ranks.topology(2, 2);
        NormalWorld world = NormalWorld.of(RoutingSpec.of(4, 512, 32, 8), 512, DType.BF16);
        long rows = rowsAcross(world.routing(), topology);
        CardCounts counts =
                count(
                        topology,
                        builder -> builder.normal(world.limits()),
                        context -> {
                            NormalRank rank = new NormalRank(context, world);
                            if (!combine) {
                                return () -> rank.dispatch();
                            }
                            DispatchHandle handle = rank.dispatch().handle();
                            return () -> rank.combine(handle);
                        },
                        all -> all.signals() > 0);
        assertThat(counts.writes()).isBetween(1L, rows);
        assertThat(counts.entries()).isLessThanOrEqualTo(3 * rows);
        assertThat(counts.doorbells()).isBetween(1L, counts.completions());
    }

    /** Pairs of a token and another node that it goes to. */
    private static long rowsAcross(Routing routing, EpTopology topology) {
        long rows = 0;
        for (int rank = 0; rank < routing.numRanks(); rank++) {
            for (int token = 0; token < routing.numTokens(rank); token++) {
                int from = rank;
                int at = token;
                rows +=
                        IntStream.range(0, routing.numRanks())
                                .filter(peer -> isRemote(topology, from, peer))
                                .filter(peer -> routing.goesTo(from, at, peer))
                                .map(peer -> topology.withRank(peer).rdmaRank())
                                .distinct()
                                .count();
            }
        }
        return rows;
    }
}
