package io.deepep.bench.plan;

import static io.deepep.bench.run.Job.MOST_EXPERTS;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.GroupLimits;
import io.deepep.LowLatencyLimits;
import io.deepep.bench.routing.RecordedRouting;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.BufferBytes;
import io.deepep.planner.Cluster;
import io.deepep.planner.Mode;
import io.deepep.planner.ModePlan;
import io.deepep.planner.Op;
import io.deepep.planner.Profile;
import io.deepep.planner.RowRule;
import io.deepep.planner.Shape;
import io.deepep.planner.TokenSource;
import io.deepep.testkit.routing.Routing;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The model and the cluster as the user describes them, turned into plans. */
final class PlanOptions {
    /** The modes to plan. */
    enum ModeChoice {
        NORMAL,
        LOW_LATENCY,
        BOTH
    }

    /** How rows go out in low-latency mode. */
    enum LowLatencyRows {
        PER_RANK,
        PER_SELECTION
    }

    /** What a dispatch ships. */
    enum RowType {
        FP8,
        BF16
    }

    private static final int NORMAL_TOKENS = 4096;
    private static final int LOW_LATENCY_TOKENS = 128;
    private static final int DEFAULT_HIDDEN = 7168;
    private static final int DEFAULT_TOPK = 8;
    private static final int DEFAULT_EXPERTS = 256;
    private static final int LARGEST = GroupLimits.MAX_RANKS;
    private static final double GIGA = 1e9;

    @Option(
            names = "--mode",
            paramLabel = "NAME",
            description = "normal, low-latency or both (default: both).")
    private ModeChoice mode = ModeChoice.BOTH;

    @Option(
            names = "--model",
            paramLabel = "FILE",
            description =
                    "The config.json of a checkpoint, or its folder; gives the hidden size, the experts"
                            + " per token and the number of experts.")
    private Path model;

    @Option(
            names = {"--num-tokens", "--tokens"},
            paramLabel = "N",
            description =
                    "Tokens per rank (default: "
                            + NORMAL_TOKENS
                            + " in normal mode, "
                            + LOW_LATENCY_TOKENS
                            + " in low-latency mode).")
    private Integer numTokens;

    @Option(
            names = "--hidden",
            paramLabel = "N",
            description = "Hidden size (default: the model's, or " + DEFAULT_HIDDEN + ").")
    private Integer hidden;

    @Option(
            names = {"--num-topk", "--topk"},
            paramLabel = "K",
            description =
                    "Experts per token, 1 to 32 (default: the model's, or " + DEFAULT_TOPK + ").")
    private Integer numTopk;

    @Option(
            names = {"--num-experts", "--experts"},
            paramLabel = "N",
            description =
                    "Experts of all ranks, a multiple of the ranks (default: the model's, or "
                            + DEFAULT_EXPERTS
                            + ").")
    private Integer numExperts;

    @Option(
            names = "--dtype",
            paramLabel = "NAME",
            description =
                    "Type of a dispatch's rows: fp8 or bf16; a combine always sends bf16 (default: fp8).")
    private RowType dtype = RowType.FP8;

    @Option(
            names = "--low-latency-rows",
            paramLabel = "NAME",
            description =
                    "How often a low-latency dispatch sends a token: once per-rank, as this library"
                            + " does, or per-selection, as DeepEP V1 does (default: per-rank).")
    private LowLatencyRows lowLatencyRows = LowLatencyRows.PER_RANK;

    @Option(names = "--nodes", paramLabel = "N", description = "Nodes (default: 1).")
    private Integer nodes;

    @Option(
            names = {"--gpus-per-node", "--ranks-per-node"},
            paramLabel = "N",
            description =
                    "GPUs of each node, 1 to "
                            + EpTopology.MAX_NVL_RANKS
                            + " (default: ${DEFAULT-VALUE}).")
    private int gpusPerNode = 8;

    @Option(
            names = "--nic-gbps",
            paramLabel = "N",
            description = "Line rate of a NIC in Gb/s (default: ${DEFAULT-VALUE}).")
    private double nicGbps = 400;

    @Option(
            names = "--nics-per-gpu",
            paramLabel = "N",
            description =
                    "NICs of each GPU; 0.5 if two GPUs share one (default: ${DEFAULT-VALUE}).")
    private double nicsPerGpu = 1;

    @Option(
            names = "--nvlink-gbs",
            paramLabel = "N",
            description =
                    "Rate of a GPU over NVLink in one direction, in GB/s (default: the profile's).")
    private double nvlinkGbs;

    @Option(
            names = "--sweep",
            description =
                    "Plans 1, 2, 4 ... nodes, up to "
                            + LARGEST
                            + " ranks, each with at least --num-experts experts.")
    boolean sweep;

    /** What the user does not say. */
    private ModelConfig defaults = new ModelConfig(DEFAULT_HIDDEN, DEFAULT_TOPK, DEFAULT_EXPERTS);

    @Mixin private ProfileChoice profile = new ProfileChoice();

    @Mixin RoutingChoice routing = new RoutingChoice();

    /** One plan to make. */
    record Job(Mode mode, Cluster cluster, Shape shape, TokenSource tokens) {
        String name() {
            return mode + " on " + cluster.topology().numRanks() + " ranks";
        }
    }

    /**
     * What is to be planned, mode by mode, then by world size.
     *
     * @throws UsageException if the options do not go together
     */
    List<Job> jobs() {
        if (model != null) {
            defaults = ModelConfig.read(model);
        }
        hidden = Objects.requireNonNullElse(hidden, defaults.hidden());
        numExperts = Objects.requireNonNullElse(numExperts, defaults.numExperts());
        UsageException.requireIn("--num-experts", numExperts, 1, MOST_EXPERTS);
        UsageException.requireIn("--gpus-per-node", gpusPerNode, 1, EpTopology.MAX_NVL_RANKS);
        UsageException.requireIn("--nodes", nodes, 1, LARGEST);
        if (sweep && nodes != null) {
            throw new UsageException(
                    "--nodes="
                            + nodes
                            + " does not go with --sweep, which plans all numbers of nodes");
        }
        if (sweep && routing.gate() == null) {
            throw new UsageException(
                    "--sweep needs a random routing, for any number of ranks: uniform, zipf or"
                            + " group-limited");
        }
        return UsageException.unlessRefused(
                () -> {
                    List<Cluster> clusters = clusters();
                    Routing recorded =
                            routing.gate() == null
                                    ? recorded(clusters.getFirst().topology().numRanks())
                                    : null;
                    return Stream.of(Mode.values())
                            .filter(this::isChosen)
                            .flatMap(
                                    each ->
                                            clusters.stream()
                                                    .map(cluster -> job(each, cluster, recorded)))
                            .toList();
                });
    }

    private boolean isChosen(Mode each) {
        return mode == ModeChoice.BOTH || mode.name().equals(each.name());
    }

    private List<EpTopology> topologies() {
        if (!sweep) {
            long ranks = Objects.requireNonNullElse(nodes, 1) * (long) gpusPerNode;
            if (ranks > LARGEST) {
                throw new UsageException(
                        "--nodes=%s x --gpus-per-node=%s exceed the most ranks that can be planned, %s"
                                .formatted(nodes, gpusPerNode, LARGEST));
            }
            return List.of(new EpTopology(0, (int) ranks, gpusPerNode));
        }
        return IntStream.iterate(gpusPerNode, ranks -> ranks <= LARGEST, ranks -> 2 * ranks)
                .mapToObj(ranks -> new EpTopology(0, ranks, gpusPerNode))
                .toList();
    }

    private List<Cluster> clusters() {
        Profile costs = profile.profile();
        return topologies().stream()
                .map(each -> new Cluster(each, costs, nicGbps, nicsPerGpu, nvlinkGbs * GIGA))
                .toList();
    }

    /**
     * One plan.
     *
     * @param recorded null where tokens are drawn
     */
    private Job job(Mode each, Cluster cluster, Routing recorded) {
        int ranks = cluster.topology().numRanks();
        Shape shape = recorded == null ? shape(each, ranks) : shape(recorded);
        requirePlannable(each, shape, cluster);
        return new Job(
                each,
                cluster,
                shape,
                recorded == null
                        ? TokenSource.drawn(routing.gate(), shape, ranks, routing.seed())
                        : TokenSource.recorded(recorded));
    }

    private Shape shape(Mode each, int ranks) {
        int standard = each == Mode.NORMAL ? NORMAL_TOKENS : LOW_LATENCY_TOKENS;
        return new Shape(
                Objects.requireNonNullElse(numTokens, standard),
                hidden,
                Objects.requireNonNullElse(numTopk, defaults.numTopk()),
                sweep ? Math.ceilDiv(numExperts, ranks) * ranks : numExperts);
    }

    private Shape shape(Routing recorded) {
        return new Shape(recorded.maxTokens(), hidden, recorded.numTopk(), numExperts);
    }

    /** Refuses, before anything is simulated, what the library or the profile would refuse. */
    private void requirePlannable(Mode each, Shape shape, Cluster cluster) {
        int tokens = shape.numTokens();
        int ranks = cluster.topology().numRanks();
        UsageException.requireShared(shape.numExperts(), ranks);
        if (dtype == RowType.FP8 && hidden % Fp8E4m3.CHANNELS_PER_SCALE != 0) {
            throw new UsageException(
                    "--hidden=%s is not a multiple of %s, which FP8 needs; use --dtype bf16"
                            .formatted(hidden, Fp8E4m3.CHANNELS_PER_SCALE));
        }
        if (each == Mode.LOW_LATENCY
                && mode == ModeChoice.BOTH
                && tokens > LowLatencyLimits.MAX_TOKENS) {
            throw new UsageException(
                    (routing.gate() == null
                                    ? "--routing: a rank has %s tokens,"
                                    : "--num-tokens=%s is")
                            .concat(" more than low-latency mode allows, %s; use --mode normal")
                            .formatted(tokens, LowLatencyLimits.MAX_TOKENS));
        }
        BufferBytes.requireAllowed(each, shape, ranks);
        for (Op op : Op.values()) {
            cluster.profile().costs(each, op);
        }
    }

    /** Makes one plan. */
    ModePlan plan(Job job) {
        return UsageException.unlessRefused(
                () ->
                        ModePlan.of(
                                job.mode(),
                                job.cluster(),
                                job.shape(),
                                dtype == RowType.FP8 ? DType.FP8_E4M3 : DType.BF16,
                                lowLatencyRows == LowLatencyRows.PER_RANK
                                        ? RowRule.ONCE_PER_RANK
                                        : RowRule.ONCE_PER_SELECTION,
                                job.tokens()));
    }

    private Routing recorded(int numRanks) {
        UsageException.requireShared(numExperts, numRanks);
        RecordedRouting file = routing.recorded();
        if (numTokens != null || (numTopk != null && numTopk != file.numTopk())) {
            throw new UsageException(
                    "--num-tokens and --num-topk do not go with a routing file, which gives both");
        }
        return file.forRanks(numRanks, numExperts);
    }
}
