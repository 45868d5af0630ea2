package io.deepep.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.Network;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.LowLatencyOperations;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.normal.CombineSource;
import io.deepep.bench.normal.NormalOperations;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankTeam;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.planner.Cluster;
import io.deepep.planner.KnownProfile;
import io.deepep.planner.Mode;
import io.deepep.planner.ModePlan;
import io.deepep.planner.Op;
import io.deepep.planner.RowRule;
import io.deepep.planner.Shape;
import io.deepep.planner.TokenSource;
import io.deepep.testkit.CardCounts;
import io.deepep.testkit.CardFolder;
import io.deepep.testkit.TestNetworks;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The card in software carries as many bytes as {@code deepep plan} says, to the byte: of
 * everything that crosses the network, nothing is forgotten or sent twice, and nothing took another
 * way. Over IBGDA of our own; or, in processes that {@code deepep launch} started with {@code
 * -Ddeepep.backends=cuda-nvshmem}, over the transport of NVSHMEM that {@code -Ddeepep.transport}
 * names.
 */
class NetworkBytesTest {
    private static final EpTopology TOPOLOGY = new EpTopology(0, 4, 2);
    private static final int HIDDEN = 2048; // two parts in a row of combine
    private static final RoutingSpec RECIPE = RoutingSpec.of(4, 16, 32, 4);

    private final Routing routing = RECIPE.generate();
    private CardFolder card;

    @BeforeEach
    void needsACard() {
        Optional<CardFolder> folder = CardFolder.ofProcess();
        if (folder.isPresent()) {
            RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        }
        Assumptions.assumeTrue(folder.isPresent(), "no card in software; see -Pemulator");
        // Its libraries are not built where their headers are missing.
        Optional<String> missing =
                isNvshmem() ? Optional.empty() : RdmaDevice.unavailabilityReason();
        Assumptions.assumeTrue(missing.isEmpty(), missing::orElseThrow);
        Assumptions.assumeTrue(
                !isNvshmem() || LaunchedGroup.size().equals(Optional.of(TOPOLOGY.numRanks())),
                "start it by: deepep launch -n 4 -- deepep-tests -c " + getClass().getName());
        card = folder.orElseThrow();
    }

    private static boolean isNvshmem() {
        return System.getProperty("deepep.backends", "").equals("cuda-nvshmem");
    }

    private Job job() {
        Network network = isNvshmem() ? TestNetworks.nvshmem() : Network.ibgda();
        return new Job(
                Placement.cuda(0),
                TOPOLOGY,
                network,
                routing,
                RECIPE,
                HIDDEN,
                Duration.ofSeconds(30),
                false,
                List.of());
    }

    @Test
    void lowLatency() {
        // Without NVLink, each rank is a node of its own.
        EpTopology topology = isNvshmem() ? new EpTopology(0, 4, 1) : TOPOLOGY;
        LaunchedGroup.run(
                launched -> {
                    Job job = job();
                    int sms = job.numSms();
                    try (LowLatencyOperations all =
                            LowLatencyOperations.open(job, launched::ranks)) {
                        requirePlanned(
                                all.team(),
                                all.dispatch(LowLatencyFormat.BF16, sms),
                                planned(Mode.LOW_LATENCY, topology, DType.BF16, Op.DISPATCH));
                        requirePlanned(
                                all.team(),
                                all.dispatch(LowLatencyFormat.FP8, sms),
                                planned(Mode.LOW_LATENCY, topology, DType.FP8_E4M3, Op.DISPATCH));
                        requirePlanned(
                                all.team(),
                                all.combine(false, CombineRows.BF16, sms),
                                planned(Mode.LOW_LATENCY, topology, DType.BF16, Op.COMBINE));
                    }
                    return null;
                });
    }

    @Test
    void normal() {
        LaunchedGroup.run(
                launched -> {
                    Job job = job();
                    int sms = job.numSms();
                    try (NormalOperations all = NormalOperations.open(job, launched::ranks)) {
                        for (DType dtype : List.of(DType.BF16, DType.FP8_E4M3)) {
                            requirePlanned(
                                    all.team(),
                                    all.dispatch(dtype, sms),
                                    planned(Mode.NORMAL, TOPOLOGY, dtype, Op.DISPATCH));
                        }
                        requirePlanned(
                                all.team(),
                                all.combine(CombineSource.ELSEWHERE, CombineFormat.BF16, sms),
                                planned(Mode.NORMAL, TOPOLOGY, DType.BF16, Op.COMBINE));
                    }
                    return null;
                });
    }

    /** Bytes of all ranks over the network. */
    private long planned(Mode mode, EpTopology topology, DType dtype, Op op) {
        Shape shape =
                new Shape(routing.maxTokens(), HIDDEN, routing.numTopk(), routing.numExperts());
        ModePlan plan =
                ModePlan.of(
                        mode,
                        new Cluster(topology, KnownProfile.H200, 400, 1, 0),
                        shape,
                        dtype,
                        RowRule.ONCE_PER_RANK,
                        TokenSource.recorded(routing));
        double mean = plan.operations().get(op.ordinal()).rdma().mean();
        return Math.round(mean * topology.numRanks());
    }

    /** All ranks make a call; the first waits for the cards before and after. */
    private void requirePlanned(RankTeam team, MeasuredCall call, long bytes) {
        CardCounts[] counts = new CardCounts[2];
        team.run(
                rank -> {
                    if (rank == 0) {
                        counts[0] = CardCounts.settled(card);
                    }
                });
        team.run(call.operation().synchronous());
        team.run(
                rank -> {
                    if (rank == 0) {
                        counts[1] =
                                CardCounts.settledSince(
                                        card, counts[0], all -> all.bytes() >= bytes);
                        assertThat(counts[1].bytes()).isEqualTo(bytes);
                        assertThat(counts[1].signals()).isPositive();
                    }
                });
    }
}
