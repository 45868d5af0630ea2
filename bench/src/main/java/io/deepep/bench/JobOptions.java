package io.deepep.bench;

import io.deepep.Backend;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.bench.routing.RecordedRouting;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.MemoryNeed;
import io.deepep.bench.run.UsageException;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options of all test and bench commands, turned into a {@link Job}. */
final class JobOptions {
    private static final int DEFAULT_TOPK = 8;

    @Option(
            names = "--backend",
            paramLabel = "NAME",
            description = "host, cuda or auto (default: auto: cuda where it works, else host).")
    private Backend backend = Backend.AUTO;

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
            names = "--sms",
            paramLabel = "N",
            description =
                    "Multiprocessors per operation, even; on the host half of it is the number of RDMA channels"
                            + " (default: what the library recommends).")
    private int numSms;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            description = "How long a rank waits for another (default: ${DEFAULT-VALUE}).")
    private long timeoutSeconds = Job.DEFAULT_TIMEOUT.toSeconds();

    @Mixin private RoutingOptions routing = new RoutingOptions();

    /**
     * The job, or a complaint.
     *
     * @throws UsageException if the options do not go together
     */
    Job job(GroupOptions group, ShapeDefaults defaults) {
        try {
            EpTopology topology =
                    new EpTopology(
                            0,
                            Math.multiplyExact(group.nodes(), group.ranksPerNode()),
                            group.ranksPerNode());
            requirePositiveTimeout();
            return routing.routing == null ? random(topology, defaults) : recorded(topology);
        } catch (IllegalArgumentException | ArithmeticException refused) {
            throw UsageException.of(refused);
        }
    }

    private void requirePositiveTimeout() {
        if (timeoutSeconds < 1) {
            throw new UsageException("--timeout=" + timeoutSeconds + " must be at least 1");
        }
        if (numSms < 0 || numSms % 2 != 0) {
            throw new UsageException("--sms=" + numSms + " is not a positive even number");
        }
    }

    private Job random(EpTopology topology, ShapeDefaults defaults) {
        int tokens = numTokens != null ? numTokens : defaults.numTokens(backend);
        if (tokens < 1) {
            throw new UsageException("--num-tokens=" + tokens + " must be at least 1");
        }
        if (routing.routingWeights != null) {
            throw new UsageException("--routing-weights needs --routing");
        }
        // Before a routing is drawn for hours.
        MemoryNeed.require(topology.numRanks(), (long) DType.BF16.sizeBytes() * tokens * hidden);
        RoutingSpec recipe =
                RoutingSpec.of(
                                topology.numRanks(),
                                tokens,
                                numExperts,
                                numTopk != null ? numTopk : DEFAULT_TOPK)
                        .withGate(routing.gate())
                        .withMaskedShare(routing.maskedRatio)
                        .withSeed(routing.seed);
        return job(topology, recipe.generate(), recipe);
    }

    private Job recorded(EpTopology topology) {
        routing.requireNoRandomOptions();
        if (numTokens != null) {
            throw new UsageException(
                    "--num-tokens="
                            + numTokens
                            + " does not go with --routing; the file has its own");
        }
        RecordedRouting file = RecordedRouting.read(routing.routing, routing.routingWeights);
        if (numTopk != null && numTopk != file.numTopk()) {
            throw new UsageException(
                    "--num-topk="
                            + numTopk
                            + " does not go with --routing="
                            + routing.routing
                            + ", which has top-"
                            + file.numTopk());
        }
        Routing replayed = file.forRanks(topology.numRanks(), numExperts);
        RoutingSpec recipe =
                new RoutingSpec(
                        topology.numRanks(),
                        replayed.maxTokens(),
                        replayed.numExperts(),
                        replayed.numTopk(),
                        new Gate.Uniform(),
                        0,
                        0,
                        false,
                        0,
                        routing.seed);
        return job(topology, replayed, recipe);
    }

    private Job job(EpTopology topology, Routing first, RoutingSpec recipe) {
        return new Job(
                backend,
                topology,
                first,
                recipe,
                hidden,
                Duration.ofSeconds(timeoutSeconds),
                numSms);
    }
}
