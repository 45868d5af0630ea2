package io.deepep.bench.cuda;

import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Ceiling;
import io.deepep.bench.measure.GpuFigures;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.Meter;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.Session;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * On GPUs the yardstick is what a bare copy of such rows between the same ranks reaches; there is
 * none where the ranks do not reach each other's memory.
 */
public final class CudaMeter extends Meter {
    /** For the empty kernel. */
    private static final int WARMUPS = 5;

    private static final int REPEATS = 40;

    private final Session session;
    private final CudaStopwatch stopwatch;
    private final List<Ceiling> ceilings;

    /** By multiprocessors. */
    private final Map<Integer, Double> emptyKernelMicros = new TreeMap<>();

    private CudaMeter(Session session, CudaStopwatch stopwatch, List<Ceiling> ceilings) {
        super(session, null);
        this.session = session;
        this.stopwatch = stopwatch;
        this.ceilings = ceilings;
    }

    /**
     * Measures the yardsticks, and prints them.
     *
     * @param rowBytes lengths of rows
     * @param sms numbers of multiprocessors
     */
    public static CudaMeter open(
            Console console, Session session, Collection<Long> rowBytes, Collection<Integer> sms) {
        CudaStopwatch stopwatch = CudaStopwatch.open(session);
        try {
            List<Ceiling> ceilings = ceilings(console, session, stopwatch, rowBytes, sms);
            ceilings.forEach(ceiling -> BenchReport.print(console, ceiling));
            return new CudaMeter(session, stopwatch, ceilings);
        } catch (RuntimeException failed) {
            stopwatch.close();
            throw failed;
        }
    }

    private static List<Ceiling> ceilings(
            Console console,
            Session session,
            CudaStopwatch stopwatch,
            Collection<Long> rowBytes,
            Collection<Integer> sms) {
        if (!PeerMemory.reachesAll(session)) {
            console.line("no bare copy: ranks of one host do not reach the memory of another's");
            return List.of();
        }
        int first = session.team().localRanks().getFirst();
        int most = LinkCeiling.mostRowBytes(stopwatch.stream(first).context());
        List<Ceiling> ceilings = new ArrayList<>();
        for (long bytes : new TreeSet<>(rowBytes)) {
            if (bytes <= most) {
                ceilings.add(LinkCeiling.measure(stopwatch, session, (int) bytes, sms));
            } else {
                console.line(
                        "no bare copy of rows of %d bytes: a block's shared memory must hold two, so %d are the most",
                        bytes, most);
            }
        }
        return ceilings;
    }

    /** Measures what an empty kernel takes on each of these numbers of multiprocessors, too. */
    public CudaMeter withEmptyKernels(Collection<Integer> sms) {
        for (int number : sms) {
            Timing timing = stopwatch.measure(stopwatch.emptyKernel(number), WARMUPS, REPEATS);
            emptyKernelMicros.put(number, timing.work().percentileMicros(50));
        }
        return this;
    }

    @Override
    protected Timing time(CollectiveCall operation, int warmups, int repeats) {
        return stopwatch.measure(operation, warmups, repeats);
    }

    @Override
    public void close() {
        stopwatch.close();
    }

    @Override
    protected GpuFigures gpu(MeasuredCall call, Timing timing) {
        Placement placement = session.job().placement();
        int sms = call.subject().sms();
        Ceiling ceiling = ceiling(call.wireRowBytes());
        Double best = ceiling == null ? null : ceiling.best();
        Double sameSms = ceiling == null ? null : ceiling.at(sms, call.pushes());
        double bytesPerSecond = timing.work().bytesPerSecond(call.linkBytes());
        return new GpuFigures(
                placement.gpu().name(),
                placement.allGpus(session.job().numRanks()),
                session.numProcesses(),
                DriverText.get(),
                call.linkBytes(),
                bytesPerSecond,
                best,
                best == null ? null : bytesPerSecond / best,
                sameSms,
                sameSms == null ? null : bytesPerSecond / sameSms,
                timing.calls().percentileMicros(50),
                timing.enqueues().percentileMicros(50),
                session.deviceBytesPerRank(),
                emptyKernelMicros.get(sms));
    }

    /** Of the rows whose length is nearest; null if none was measured. */
    private Ceiling ceiling(long rowBytes) {
        return ceilings.stream()
                .min(Comparator.comparingLong(each -> Math.abs(each.rowBytes() - rowBytes)))
                .orElse(null);
    }
}
