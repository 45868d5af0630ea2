package io.deepep.bench;

import io.deepep.CombineFormat;
import io.deepep.Network;
import io.deepep.bench.cuda.PutBench;
import io.deepep.bench.lowlatency.CombineRows;
import io.deepep.bench.lowlatency.DecodeBench;
import io.deepep.bench.lowlatency.LowLatencyBench;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.ComparedOptions;
import io.deepep.bench.measure.OperationOptions;
import io.deepep.bench.normal.NormalBench;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.UsageException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.IntFunction;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The parent of the measuring commands. */
@Command(
        name = "bench",
        description = "Verifies, then measures each operation.",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "normal|low-latency|decode|put")
final class BenchCommand implements Runnable {
    @Spec private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(),
                "no mode given; use bench normal, bench low-latency, bench decode or bench put");
    }

    /** Normal mode. */
    @Command(
            name = "normal",
            description = "Measures normal mode.",
            mixinStandardHelpOptions = true)
    static final class Normal extends JobCommand {
        @Mixin private OperationOptions bench = new OperationOptions();

        @Option(
                names = "--profile",
                paramLabel = "FILE",
                description =
                        "Also writes how many multiprocessors dispatch and combine need on this machine,"
                                + " for buffers to use. Needs a GPU for each rank (docs/guides/tuning.md).")
        private Path profile;

        Normal(Console console) {
            super(console, JobOptions.normal(1024), new GroupOptions.AnyNodes(1));
        }

        @Override
        void validate() {
            OutputFile.require("--profile", profile);
            bench.validate();
        }

        @Override
        boolean run(Console report, Job job, IntFunction<RankSource> ranks) {
            return NormalBench.run(report, job, bench, profile, ranks);
        }
    }

    /** Low-latency mode. */
    @Command(
            name = "low-latency",
            description = "Measures low-latency mode.",
            mixinStandardHelpOptions = true)
    static final class LowLatency extends JobCommand {
        @Mixin private OperationOptions bench = new OperationOptions();

        @Mixin private MeasuredTokens tokens = new MeasuredTokens();

        LowLatency(Console console) {
            super(console, JobOptions.lowLatency(), new GroupOptions.AnyNodes(1));
        }

        @Override
        void validate() {
            bench.validate();
        }

        @Override
        boolean run(Console report, Job job, IntFunction<RankSource> ranks) {
            return LowLatencyBench.run(report, job, tokens.of(job), bench, ranks);
        }
    }

    /** The loop of a decoding engine. */
    @Command(
            name = "decode",
            description =
                    "Measures low-latency mode as a decoding engine uses it: the layers of a model,"
                            + " each a dispatch and a combine, enqueued one after the other; on GPUs"
                            + " also replayed as a graph.",
            mixinStandardHelpOptions = true)
    static final class Decode implements Callable<Integer> {
        private final Console console;

        @Mixin private JobOptions options = JobOptions.lowLatency();

        @Mixin private GroupOptions group = new GroupOptions.AnyNodes(1);

        @Mixin private ComparedOptions bench = new ComparedOptions();

        @Mixin private MeasuredTokens tokens = new MeasuredTokens();

        @Option(
                names = "--layers",
                paramLabel = "N",
                description = "Layers of a step (default: ${DEFAULT-VALUE}).")
        private int layers = 60;

        @Option(
                names = "--pre-reduced",
                description = "Each rank sums the rows of a token before it sends them.")
        private boolean preReduced;

        @Option(
                names = "--combine",
                paramLabel = "FORMAT",
                description = "Format of combine's rows: bf16, fp8 or logfmt (default: bf16).")
        private CombineFormat combine = CombineFormat.BF16;

        Decode(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() {
            LaunchedGroup.refuse("bench decode");
            bench.validate();
            UsageException.requireIn("--layers", layers, 1, 10_000);
            if (preReduced && combine == CombineFormat.LOGFMT) {
                throw new UsageException(
                        "--combine=logfmt with --pre-reduced is not measured; use --combine=bf16 or fp8");
            }
            DecodeBench.Step step =
                    new DecodeBench.Step(layers, CombineRows.of(combine, preReduced));
            return options.run(
                    group, job -> DecodeBench.run(console, job, tokens.of(job), step, bench));
        }
    }

    /** Puts between ranks. */
    @Command(
            name = "put",
            description =
                    "Measures puts with a signal: bandwidth and latency by message size, and the"
                            + " traffic of a sparse dispatch and combine.",
            mixinStandardHelpOptions = true)
    static final class Put implements Callable<Integer> {
        private final Console console;

        @Option(
                names = "--ranks",
                paramLabel = "N",
                description =
                        "Ranks; they share GPUs if there are fewer (default: the processes that a"
                                + " launcher started, else 2).")
        private Integer ranks;

        @Option(
                names = "--sms",
                paramLabel = "N",
                description = "Multiprocessors of each rank (default: ${DEFAULT-VALUE}).")
        private int sms = 16;

        @Option(
                names = "--sizes",
                paramLabel = "BYTES",
                split = ",",
                description =
                        "Message sizes in bytes, multiples of 16 (default: ${DEFAULT-VALUE}).")
        private List<Integer> sizes =
                List.of(16, 64, 256, 1024, 4096, 7424, 14_336, 65_536, 262_144, 1_048_576);

        @Option(
                names = "--rows",
                paramLabel = "N",
                description =
                        "Rows that each rank sends to each other rank in the sparse pattern"
                                + " (default: ${DEFAULT-VALUE}).")
        private int rows = 85;

        @Mixin private NetworkOptions network = new NetworkOptions();

        @Mixin private BenchOptions bench = new BenchOptions();

        Put(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() {
            bench.validate();
            Network carries = network.network();
            if (carries instanceof Network.Ibgda) {
                throw new UsageException(
                        "bench put measures peer memory and nvshmem; give --network=nvshmem, or leave it out");
            }
            if (carries instanceof Network.Nvshmem nvshmem) {
                // What is measured is the transport, also between GPUs that NVLink joins.
                carries =
                        nvshmem.withPureRdma(
                                nvshmem.pureRdma()
                                        || nvshmem.transport() != Network.Transport.NONE);
            }
            int number = ranks != null ? ranks : LaunchedGroup.size().orElse(2);
            PutBench.Request request = new PutBench.Request(carries, number, sms, sizes, rows);
            return LaunchedGroup.run(
                    launched -> {
                        PutBench.run(console, request, bench, launched);
                        return Main.EXIT_PASSED;
                    });
        }
    }
}
