package io.deepep.bench.cuda;

import io.deepep.Communicator;
import io.deepep.Network;
import io.deepep.bench.cuda.PutLoad.Pattern;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import io.deepep.cuda.CudaDevice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Bandwidth and latency of puts with a signal by message size, and the traffic of a sparse dispatch
 * and combine: over the memory of peers, or by NVSHMEM.
 */
public final class PutBench {
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final int WARPS = 8;
    private static final int ROUND_TRIPS = 200;
    private static final long BYTES_PER_RUN = 128L << 20;
    private static final int MAX_ROWS = 256;
    private static final int DISPATCHED_BYTES = 7424;
    private static final int COMBINED_BYTES = 14_336;
    private static final double GIGA = 1e9;

    private final Console console;
    private final Request request;
    private final BenchOptions options;
    private final Placement placement;
    private final RankTeam team;
    private final PerRank<PutRank> ranks;
    private final List<PutRecord> records = new ArrayList<>();

    /**
     * What to measure.
     *
     * @param network NVSHMEM, with a process for each rank; else ranks reach each other's memory
     * @param ranks at least 2; ranks share GPUs where there are fewer
     * @param sms blocks of a rank
     * @param sizes of messages, multiples of 16
     * @param sparseRows to each peer in the sparse pattern
     */
    public record Request(
            Network network, int ranks, int sms, List<Integer> sizes, int sparseRows) {
        /** Checks the values. */
        public Request {
            UsageException.requireIn("--ranks", ranks, 2, 1024);
            UsageException.requireIn("--sms", sms, 1, 1024);
            UsageException.requireIn("--rows", sparseRows, 1, 1 << 16);
            for (int size : sizes) {
                UsageException.requireIn("--sizes", size, 16, 1 << 30);
                if (size % 16 != 0) {
                    throw new UsageException("--sizes: " + size + " is not a multiple of 16");
                }
            }
            sizes = List.copyOf(sizes);
        }

        long maxSize() {
            return sizes.stream().mapToInt(Integer::intValue).max().orElse(16);
        }
    }

    private PutBench(
            Console console,
            Request request,
            BenchOptions options,
            Placement placement,
            RankTeam team,
            PerRank<PutRank> ranks) {
        this.console = console;
        this.request = request;
        this.options = options;
        this.placement = placement;
        this.team = team;
        this.ranks = ranks;
    }

    /**
     * Measures all, prints a line for each figure, and writes the records where they are asked for.
     *
     * @param launched the processes, each a rank, if there are any
     */
    public static void run(
            Console console, Request request, BenchOptions options, LaunchedGroup launched) {
        if (request.network() instanceof Network.Nvshmem) {
            launched.communicator(request.ranks());
        }
        Placement placement = Placement.cuda(0);
        placement.requireRoom(request.sms(), request.ranks());
        try (RankSource source = launched.ranks(request.ranks());
                RankTeam team = RankTeam.start(source);
                PerRank<PutRank> ranks =
                        PerRank.openAsked(team, rank -> open(request, placement, source, rank))) {
            PutBench bench =
                    new PutBench(
                            launched.console(console), request, options, placement, team, ranks);
            bench.measure();
            if (options.json() != null && launched.writesResults()) {
                BenchReport.write(options.json(), bench.records);
            }
        }
    }

    private static PutRank open(Request request, Placement placement, RankSource source, int rank) {
        int slots = Math.max(request.sms() * WARPS, 2 * request.sparseRows());
        long cellBytes =
                Math.max(
                        (long) request.sms() * WARPS * request.maxSize(),
                        2L * request.sparseRows() * COMBINED_BYTES);
        Communicator communicator = source.communicator(rank);
        return new PutRank(
                new PutMemory(request.ranks(), cellBytes, slots),
                communicator,
                CudaDevice.of(placement.device(communicator.localRank()).index()),
                request.network(),
                request.sms(),
                TIMEOUT);
    }

    private String transport() {
        return request.network() instanceof Network.Nvshmem nvshmem
                ? "NVSHMEM, transport " + nvshmem.transport()
                : "peer memory";
    }

    /** GPUs that the first so many ranks are on. */
    private int numGpus(int numRanks) {
        return Math.min(numRanks, placement.allGpus(request.ranks()));
    }

    private void measure() {
        console.line(
                "puts with a signal over %s: %d ranks on %d x %s, %s",
                transport(),
                request.ranks(),
                numGpus(request.ranks()),
                placement.gpu().name(),
                DriverText.get());
        console.line("%-10s %10s %12s %12s %12s", "pattern", "bytes", "p50 us", "p99 us", "GB/s");
        for (int size : request.sizes()) {
            bandwidth(size);
        }
        for (int size : request.sizes()) {
            latency(size);
        }
        sparse();
    }

    private void bandwidth(int size) {
        int warps = request.sms() * WARPS;
        int rows = Math.clamp(BYTES_PER_RUN / warps / size, 2, MAX_ROWS);
        PutLoad load = new PutLoad(Pattern.BANDWIDTH, 2, request.sms(), WARPS, rows, size, 0);
        PutLoad sender = new PutLoad(load.pattern(), 1, load.blocks(), WARPS, rows, size, 0);
        Samples samples = samples(sender, 1);
        team.run(
                rank -> {
                    if (rank == 1) {
                        ranks.get(rank).requireHere((warps - 1L) * size, size);
                    }
                });
        long messages = (long) warps * rows;
        report(load, messages, messages * size, samples, true);
    }

    private void latency(int size) {
        PutLoad load = new PutLoad(Pattern.LATENCY, 2, 1, 1, ROUND_TRIPS, size, 0);
        // Each sample is a mean, of which a percentile says nothing about messages.
        report(load, 1, size, samples(load, 2 * ROUND_TRIPS), false);
    }

    private void sparse() {
        int rows = request.sparseRows();
        PutLoad load =
                new PutLoad(
                        Pattern.SPARSE,
                        request.ranks(),
                        request.sms(),
                        WARPS,
                        rows,
                        DISPATCHED_BYTES,
                        COMBINED_BYTES);
        Samples samples = samples(load, 1);
        long toPeers = (long) rows * (request.ranks() - 1);
        long bytes = toPeers * (DISPATCHED_BYTES + COMBINED_BYTES);
        report(load, 2 * toPeers, bytes, samples, true);
    }

    private Samples samples(PutLoad load, int parts) {
        return Samples.measure(
                options.warmups(), options.repeats(), () -> Math.round(micros(load) * 1e3 / parts));
    }

    /** Of the first rank here, which is rank 0 where results are written. */
    private double micros(PutLoad load) {
        List<Double> times = team.ask(rank -> ranks.get(rank).micros(load));
        return times.get(team.localRanks().getFirst());
    }

    private void report(
            PutLoad load, long messages, long bytes, Samples samples, boolean withTail) {
        Double p99 = withTail ? samples.percentileMicros(99) : null;
        double bytesPerSecond = samples.bytesPerSecond(bytes);
        String pattern = load.pattern().name().toLowerCase(Locale.ROOT);
        console.line(
                "%-10s %10d %12.2f %12s %12.2f",
                pattern,
                load.rowBytes(),
                samples.percentileMicros(50),
                p99 == null ? "" : Decimals.of("%.2f", p99),
                bytesPerSecond / GIGA);
        Build build = Build.current();
        records.add(
                new PutRecord(
                        transport(),
                        pattern,
                        load.rowBytes(),
                        load.ranks(),
                        numGpus(load.ranks()),
                        load.blocks(),
                        messages,
                        samples.percentileMicros(50),
                        p99,
                        bytesPerSecond,
                        placement.gpu().name(),
                        DriverText.get(),
                        build.version(),
                        build.commit()));
    }
}
