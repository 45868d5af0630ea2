package io.deepep.bench.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.bench.measure.Ceiling;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.PerRank;
import io.deepep.bench.run.RankTeam;
import io.deepep.bench.run.Session;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.testkit.routing.Routing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What {@code bench_exchange.cu} reaches, timed like an operation: every rank sends or fetches rows
 * to or from every other rank at once, with nothing else to do. Ranks on GPUs of their own so
 * measure the links, ranks that share a GPU its memory.
 *
 * <p>Bytes are those of a GPU: of all its ranks together.
 */
public final class LinkCeiling {
    /** A row is copied in vectors of so many bytes. */
    private static final int VECTOR_BYTES = 16;

    /** Enough for a steady rate; a toy job is compared with fewer. */
    private static final long BYTES_PER_RANK = 256L << 20;

    private static final int TIMES_OF_JOB = 2048;
    private static final int RESERVED_SHARED_BYTES = 4096;
    private static final int WARMUPS = 2;
    private static final int REPEATS = 7;

    private final CudaStopwatch stopwatch;
    private final RankTeam team;
    private final int ranksPerGpu;
    private final int rowBytes;
    private final int rows;
    private final long halfBytes;

    private LinkCeiling(CudaStopwatch stopwatch, Session session, int rowBytes) {
        this.stopwatch = stopwatch;
        this.team = session.team();
        this.ranksPerGpu = session.job().placement().ranksPerGpu(team.size());
        this.rowBytes = rowBytes;
        Routing routing = session.job().routing();
        long ofJob = (long) routing.maxTokens() * routing.numTopk() * rowBytes;
        long bytes = Math.min(BYTES_PER_RANK, TIMES_OF_JOB * ofJob);
        this.rows = (int) Math.max(1, bytes / numPeers() / rowBytes);
        this.halfBytes = (long) team.size() * rows * rowBytes;
    }

    /** A single rank copies to itself. */
    private int numPeers() {
        return Math.max(1, team.size() - 1);
    }

    /**
     * Measures.
     *
     * @param rowBytes a multiple of {@link #VECTOR_BYTES}, at most {@link #mostRowBytes}
     * @param sms numbers of multiprocessors
     * @throws IllegalArgumentException if {@code rowBytes} is no such multiple
     * @throws IllegalStateException if rows did not arrive
     */
    public static Ceiling measure(
            CudaStopwatch stopwatch, Session session, int rowBytes, Collection<Integer> sms) {
        if (rowBytes % VECTOR_BYTES != 0) {
            throw new IllegalArgumentException(
                    "rowBytes=%s is not a multiple of %s".formatted(rowBytes, VECTOR_BYTES));
        }
        LinkCeiling ceiling = new LinkCeiling(stopwatch, session, rowBytes);
        try (PeerMemory memory = PeerMemory.allocate(session, 2 * ceiling.halfBytes);
                PerRank<BenchModule> modules =
                        PerRank.open(
                                session.team(),
                                rank ->
                                        BenchModule.load(
                                                stopwatch.stream(rank).context(), "exchange"))) {
            return new Ceiling(
                    rowBytes,
                    ceiling.measure(modules, memory, sms, false),
                    ceiling.measure(modules, memory, sms, true));
        }
    }

    /** The most bytes of a row of which a block's shared memory holds what a copy needs. */
    static int mostRowBytes(CudaContext context) {
        return sharedBytes(context) / BenchStructs.STAGES;
    }

    private static int sharedBytes(CudaContext context) {
        return context.cudaDevice().maxSharedBytesPerBlock() - RESERVED_SHARED_BYTES;
    }

    private SortedMap<Integer, Double> measure(
            PerRank<BenchModule> modules,
            PeerMemory memory,
            Collection<Integer> sms,
            boolean pull) {
        team.run(rank -> fill(memory, rank));
        SortedMap<Integer, Double> bySms = new TreeMap<>();
        for (int number : sms) {
            bySms.put(number, bytesPerSecond(modules, memory, number, pull));
        }
        team.run(rank -> requireArrived(memory, rank));
        return bySms;
    }

    private double bytesPerSecond(
            PerRank<BenchModule> modules, PeerMemory memory, int sms, boolean pull) {
        List<Runnable> launches =
                team.ask(rank -> launch(modules.get(rank), memory, rank, sms, pull));
        CollectiveCall exchange =
                (rank, options) -> {
                    launches.get(rank).run();
                    return stopwatch.stream(rank).record();
                };
        double micros = stopwatch.measure(exchange, WARMUPS, REPEATS).work().percentileMicros(50);
        return (double) ranksPerGpu * rows * numPeers() * rowBytes / (micros * 1e-6);
    }

    /** One rank's launch. */
    private Runnable launch(
            BenchModule module, PeerMemory memory, int rank, int sms, boolean pull) {
        Arena arena = Arena.ofAuto();
        CudaStream stream = stopwatch.stream(rank);
        int warps = Math.min(mostRowBytes(stream.context()) / rowBytes, BenchStructs.MAX_WARPS);
        int sharedBytes = warps * BenchStructs.STAGES * rowBytes;
        module.function().setMaxDynamicSharedBytes(sharedBytes);
        LaunchConfig launch = new LaunchConfig(arena, sms, 32 * warps).sharedBytes(sharedBytes);
        KernelStruct.Params params =
                BenchStructs.EXCHANGE
                        .allocate(arena)
                        .set("memory", memory.table(rank))
                        .set("target_offset", halfBytes)
                        .setInt("rank", rank)
                        .setInt("num_ranks", team.size())
                        .setInt("rows", rows)
                        .setInt("row_bytes", rowBytes)
                        .setInt("pull", pull ? 1 : 0);
        return () -> module.function().launch(launch, params.memory(), stream);
    }

    /** Every word of a rank's source half says whose it is; the target half is empty. */
    private void fill(PeerMemory memory, int rank) {
        CudaStream stream = stopwatch.stream(rank);
        long address = memory.address(rank);
        stream.fillInts(address, rank + 1, halfBytes / Integer.BYTES);
        stream.fillInts(address + halfBytes, 0, halfBytes / Integer.BYTES);
        stream.synchronize();
    }

    /** The last row from every peer must be that peer's. */
    private void requireArrived(PeerMemory memory, int rank) {
        CudaStream stream = stopwatch.stream(rank);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment word = arena.allocate(JAVA_LONG);
            for (int i = 1; i <= numPeers(); i++) {
                int peer = (rank + i) % team.size();
                long slot = (long) peer * rows + rows - 1;
                long end = memory.address(rank) + halfBytes + (slot + 1) * rowBytes;
                stream.copy(word.address(), end - word.byteSize(), word.byteSize());
                stream.synchronize();
                long expected = (peer + 1) * 0x1_0000_0001L;
                long seen = word.get(JAVA_LONG, 0);
                if (seen != expected) {
                    throw new IllegalStateException(
                            "the bare copy lost rows: rank %s expected %s from rank %s, saw %s"
                                    .formatted(rank, expected, peer, seen));
                }
            }
        }
    }
}
