package io.deepep.bench;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.bench.routing.RecordedRouting;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.UsageException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.function.Predicate;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options of all test and bench commands, turned into a {@link Job}. */
final class JobOptions {
    private static final int DEFAULT_TOPK = 8;

    /** More than a week, and far from where nanoseconds overflow. */
    private static final long MOST_SECONDS = 1_000_000;

    @Option(
            names = "--backend",
            paramLabel = "NAME",
            description = "host, cuda or auto (default: auto: cuda where it works, else host).")
    private BackendName backend = BackendName.AUTO;

    @Mixin private GpuOption gpus = new GpuOption();

    @Option(
            names = "--num-tokens",
            paramLabel = "N",
            description = "Tokens per rank (default: see below).")
    private Integer numTokens;

    @Option(
            names = "--hidden",
            paramLabel = "N",
            description = "Hidden size (default: ${DEFAULT-VALUE}).")
    private int hidden = 7168;

    @Option(
            names = "--num-topk",
            paramLabel = "K",
            description = "Experts per token, 1 to 32 (default: 8).")
    private Integer numTopk;

    @Option(
            names = "--num-experts",
            paramLabel = "N",
            description =
                    "Experts of all ranks, a multiple of the ranks (default: ${DEFAULT-VALUE}).")
    private int numExperts;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            description =
                    "Seconds that a rank waits for another (default: ${DEFAULT-VALUE}). Launched"
                            + " processes have at least 120 to start.")
    private long timeoutSeconds = Job.DEFAULT_TIMEOUT.toSeconds();

    @Option(
            names = "--mask-timed-out-ranks",
            description =
                    "Opens buffers that mask timed-out ranks, as an engine does to continue without"
                            + " them. Across nodes, such buffers use other kernels.")
    private boolean masksTimedOut;

    @Mixin private NetworkOptions network = new NetworkOptions();

    @Mixin private RoutingOptions routing = new RoutingOptions();

    @Mixin private SmsOptions sms;

    /** Tokens of each rank unless the user says otherwise. */
    private final int hostTokens;

    private final int cudaTokens;

    private JobOptions(int hostTokens, int cudaTokens, int numExperts, SmsOptions sms) {
        this.hostTokens = hostTokens;
        this.cudaTokens = cudaTokens;
        this.numExperts = numExperts;
        this.sms = sms;
    }

    /**
     * For normal mode.
     *
     * @param hostTokens tokens of each rank on the host backend: so few that a test with all its
     *     checks ends within a minute on two cores
     */
    static JobOptions normal(int hostTokens) {
        return new JobOptions(hostTokens, 4096, 256, new SmsOptions.Normal());
    }

    /** For low-latency mode. */
    static JobOptions lowLatency() {
        return new JobOptions(128, 128, 288, new SmsOptions.LowLatency());
    }

    /** What the help says at its end. */
    String footer() {
        String tokens =
                hostTokens == cudaTokens
                        ? Integer.toString(hostTokens)
                        : ("%s on the host backend (so that all checks take less than a minute on two cores),"
                                        + " %s on GPUs")
                                .formatted(hostTokens, cudaTokens);
        return "Tokens per rank without --num-tokens and --routing: " + tokens + ".";
    }

    /**
     * Makes the job and does it. With {@link BackendName#AUTO} on GPUs if they can be used and have
     * what it takes, else on the host; the job says why.
     *
     * @param work does the job; whether all went well
     * @return the exit code
     * @throws UsageException if the options do not go together
     */
    int run(GroupOptions group, Predicate<Job> work) {
        return passed(group, work) ? Main.EXIT_PASSED : Main.EXIT_FAILED;
    }

    private boolean passed(GroupOptions group, Predicate<Job> work) {
        if (backend == BackendName.HOST) {
            network.requireUnnamed();
            return work.test(job(gpus.host(), group));
        }
        try {
            return work.test(job(gpus.cuda(), group));
        } catch (UsageException | DeepEpUnavailableException refused) {
            Throwable cause = refused instanceof UsageException ? refused.getCause() : refused;
            if (backend == BackendName.CUDA || !(cause instanceof DeepEpUnavailableException)) {
                throw refused;
            }
            String why = "auto: " + cause.getMessage().replace('\n', ' ');
            return work.test(job(Placement.host(why), group));
        }
    }

    /** How long a rank waits for another, also until all have started. */
    Duration timeout() {
        UsageException.requireIn("--timeout", timeoutSeconds, 1, MOST_SECONDS);
        return Duration.ofSeconds(timeoutSeconds);
    }

    private Job job(Placement placement, GroupOptions group) {
        EpTopology topology = group.topology();
        requireGoodNumbers(topology);
        sms.numbers().forEach(number -> placement.requireRoom(number, topology.numRanks()));
        return UsageException.unlessRefused(
                () ->
                        routing.routing == null
                                ? random(placement, topology)
                                : recorded(placement, topology));
    }

    private void requireGoodNumbers(EpTopology topology) {
        UsageException.requireIn("--num-experts", numExperts, 1, Job.MOST_EXPERTS);
        UsageException.requireShared(numExperts, topology.numRanks());
        UsageException.requireIn("--num-topk", numTopk, 1, NormalLimits.MAX_TOPK);
        if (!(routing.maskedRatio >= 0 && routing.maskedRatio <= 1)) {
            throw new UsageException("--masked-ratio=" + routing.maskedRatio + " is not in [0, 1]");
        }
        sms.validate();
    }

    private Job random(Placement placement, EpTopology topology) {
        int usual = placement.isCuda() ? cudaTokens : hostTokens;
        int tokens = numTokens != null ? numTokens : usual;
        if (tokens < 1) {
            throw new UsageException("--num-tokens=" + tokens + " must be at least 1");
        }
        if (routing.routingWeights != null) {
            throw new UsageException("--routing-weights needs --routing");
        }
        int topk = numTopk != null ? numTopk : DEFAULT_TOPK;
        if (topk > numExperts) {
            throw new UsageException(
                    "--num-topk=%s exceeds --num-experts=%s; change one of them"
                            .formatted(topk, numExperts));
        }
        // Before a routing is drawn for hours.
        MemoryNeed.require(topology.numRanks(), (long) DType.BF16.sizeBytes() * tokens * hidden);
        RoutingSpec recipe =
                RoutingSpec.of(topology.numRanks(), tokens, numExperts, topk)
                        .withGate(routing.gate())
                        .withMaskedShare(routing.maskedRatio)
                        .withSeed(routing.seed());
        return job(placement, topology, recipe.generate(), recipe);
    }

    private Job recorded(Placement placement, EpTopology topology) {
        routing.requireNoRandomOptions();
        if (numTokens != null) {
            throw new UsageException(
                    "--num-tokens="
                            + numTokens
                            + " does not go with --routing; the file gives the number of tokens");
        }
        RecordedRouting file = RecordedRouting.read(routing.routing, routing.routingWeights);
        if (numTopk != null && numTopk != file.numTopk()) {
            throw new UsageException(
                    "--num-topk=%s does not go with --routing=%s, which has %s experts per token"
                            .formatted(numTopk, routing.routing, file.numTopk()));
        }
        Routing replayed = file.forRanks(topology.numRanks(), numExperts);
        RoutingSpec recipe =
                RoutingSpec.of(
                                topology.numRanks(),
                                replayed.maxTokens(),
                                replayed.numExperts(),
                                replayed.numTopk())
                        .withSeed(routing.seed());
        return job(placement, topology, replayed, recipe);
    }

    private Job job(Placement placement, EpTopology topology, Routing first, RoutingSpec recipe) {
        return new Job(
                placement,
                topology,
                network.network(),
                first,
                recipe,
                hidden,
                timeout(),
                masksTimedOut,
                sms.numbers());
    }
}
