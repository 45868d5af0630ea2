package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyPlan;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import java.lang.foreign.Arena;

/**
 * The launches of one operation's runs, by bank or run number, of which there are two: one that
 * does both halves, or with a hook one for each. Keeps the traces of runs that are observed; others
 * cost nothing more than their launch.
 */
final class RunLaunches {
    private static final int RUNS = 2;

    private final CudaLowLatencyState state;
    private final CudaFunction kernel;
    private final LaunchConfig launch;
    private final CallEvent event;

    /** The halves of a run's first launch. */
    private final int first;

    private final Params[] sends = new Params[RUNS];

    /** Nulls without a hook. */
    private final Params[] receives = new Params[RUNS];

    /** Of the latest run of each number; null if it is not observed. */
    private final RunTrace[] observed = new RunTrace[RUNS];

    /** Whether the launch that receives counts waits for observers. */
    private final boolean[] countsWaits = new boolean[RUNS];

    /** By run: whether kernels are told to allow the next launch. */
    private final boolean[] allowsNext = new boolean[RUNS];

    /** Used in turn; null before somebody observes. */
    private final RunTrace[] traces = new RunTrace[RUNS];

    private final RunTrace.Source source;
    private RunTrace announced;
    private int numAnnounced;

    /** What a kernel is told for the halves {@code phases} of a run. */
    @FunctionalInterface
    interface ParamsOf {
        /** In memory that lives as long as {@code arena}. */
        Params params(Arena arena, int run, int phases);
    }

    /**
     * Launches of {@code kernel}.
     *
     * @param event recorded behind each launch
     * @param hooked whether each half is a launch of its own
     * @param source what observed runs are told from
     */
    RunLaunches(
            CudaLowLatencyState state,
            CudaFunction kernel,
            LowLatencyPlan plan,
            int sharedBytes,
            CallEvent event,
            boolean hooked,
            ParamsOf params,
            RunTrace.Source source) {
        Arena arena = Arena.ofAuto();
        int numBlocks = state.numBlocks(plan, kernel, sharedBytes);
        this.state = state;
        this.kernel = kernel;
        this.launch =
                new LaunchConfig(arena, numBlocks, LowLatencyStructs.THREADS)
                        .sharedBytes(sharedBytes)
                        .overlapsPrevious();
        this.event = event;
        this.source = source;
        this.first = hooked ? CudaLowLatencyState.SEND : CudaLowLatencyState.BOTH;
        for (int run = 0; run < RUNS; run++) {
            sends[run] = params.params(arena, run, first);
            receives[run] = hooked ? params.params(arena, run, CudaLowLatencyState.RECEIVE) : null;
        }
    }

    /** The next run is observed: what will be known of it. */
    RunTrace announce() {
        int turn = numAnnounced++ % RUNS;
        if (traces[turn] == null) {
            traces[turn] = new RunTrace(state, this, source);
        }
        announced = traces[turn];
        return announced;
    }

    /** The first launch of a run, which is the only one without a hook. */
    void begin(int run, CudaBank bank) {
        RunTrace trace = announced;
        announced = null;
        boolean whole = receives[run] == null;
        if (whole) {
            prepareReceive(sends[run], run, trace);
        }
        observed[run] = trace;
        boolean capturing = prepareNext(run);
        kernel.launch(launch, sends[run].memory(), state.stream);
        if (trace != null) {
            trace.sent(bank);
            if (whole) {
                trace.received(bank);
            }
        }
        event.record(capturing);
    }

    /** The second launch of a run. */
    void receive(int run, CudaBank bank) {
        boolean capturing = prepareNext(run);
        RunTrace trace = capturing ? null : observed[run]; // a replay would overwrite it
        prepareReceive(receives[run], run, trace);
        kernel.launch(launch, receives[run].memory(), state.stream);
        if (trace != null) {
            trace.received(bank);
        }
        event.record(capturing);
    }

    /** Kernels in a graph allow the next one to begin early. Whether the stream is captured. */
    private boolean prepareNext(int run) {
        boolean capturing = state.stream.isCapturing();
        if (capturing != allowsNext[run]) {
            allowsNext[run] = capturing;
            setPhases(sends[run], first, capturing);
            if (receives[run] != null) {
                setPhases(receives[run], CudaLowLatencyState.RECEIVE, capturing);
            }
        }
        return capturing;
    }

    private void setPhases(Params params, int halves, boolean allowsNext) {
        new Params(state.gpu.structs.group, params.memory())
                .setInt("phases", allowsNext ? halves | CudaLowLatencyState.ALLOW_NEXT : halves);
    }

    /** Kernels count waits only where somebody wants to know. */
    private void prepareReceive(Params params, int run, RunTrace trace) {
        if (source.waitCostStats() == null && (trace != null) != countsWaits[run]) {
            countsWaits[run] = trace != null;
            params.set("wait_stats", trace == null ? 0 : state.waitStats.address());
        }
        if (trace != null) {
            trace.beforeReceive();
        }
    }
}
