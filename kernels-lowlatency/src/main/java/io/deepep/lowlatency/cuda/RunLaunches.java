package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyPlan;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.error.CallOrderException;
import java.lang.foreign.Arena;

/**
 * The launches of one operation's runs, by bank or run number, of which there are two: one that
 * does both halves, or with a hook one for each. Captured runs have parameters of their own. Keeps
 * the traces of runs that are observed; others cost nothing more than their launch.
 */
final class RunLaunches {
    private static final int RUNS = LowLatencyStructs.RUNS;
    private static final int PLACES = LowLatencyStructs.RUN_PLACES;

    private final CudaLowLatencyState state;
    private final CudaFunction kernel;
    private final LaunchConfig launch;
    private final CallEvent event;

    /** By place of a run. */
    private final Params[] sends = new Params[PLACES];

    /** The same; nulls without a hook. */
    private final Params[] receives = new Params[PLACES];

    /** Of the latest run of each number. */
    private final int[] places = new int[RUNS];

    /** Of the latest run of each number; null if it is not observed. */
    private final RunTrace[] observed = new RunTrace[RUNS];

    /** By place: whether the launch that receives counts waits for observers. */
    private final boolean[] countsWaits = new boolean[PLACES];

    /** Used in turn; null before somebody observes. */
    private final RunTrace[] traces = new RunTrace[RUNS];

    private final RunTrace.Source source;
    private RunTrace announced;
    private int numAnnounced;

    /** What a kernel is told for the halves {@code phases} of a run at {@code place}. */
    @FunctionalInterface
    interface ParamsOf {
        /** In memory that lives as long as {@code arena}. */
        Params params(Arena arena, int place, int phases);
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
        int first = hooked ? CudaLowLatencyState.SEND : CudaLowLatencyState.BOTH;
        for (int place = 0; place < PLACES; place++) {
            // Kernels in a graph allow the next one to begin early.
            int more = isCaptured(place) ? CudaLowLatencyState.ALLOW_NEXT : 0;
            int second = CudaLowLatencyState.RECEIVE;
            sends[place] = params.params(arena, place, first | more);
            receives[place] = hooked ? params.params(arena, place, second | more) : null;
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

    /**
     * The first launch of a run, which is the only one without a hook.
     *
     * @param dispatch {@link io.deepep.lowlatency.BankHandle#id} of what the bank is to hold
     */
    void begin(int run, CudaBank bank, long dispatch) {
        RunTrace trace = announced;
        announced = null;
        boolean capturing = state.isCapturing();
        int place = capturing ? RUNS + run : run;
        places[run] = place;
        sends[place].set("dispatch", dispatch);
        boolean whole = receives[place] == null;
        if (whole) {
            prepareReceive(sends[place], place, trace);
        } else {
            receives[place].set("dispatch", dispatch);
        }
        observed[run] = trace;
        kernel.launch(launch, sends[place].memory(), state.stream);
        if (trace != null) {
            trace.sent(bank);
            if (whole) {
                trace.received(bank);
            }
        }
        event.record(capturing);
    }

    /**
     * The second launch of a run.
     *
     * @throws CallOrderException if a graph would repeat it, but not the first
     */
    void receive(int run, CudaBank bank) {
        int place = places[run];
        boolean capturing = state.isCapturing();
        if (capturing && !isCaptured(place)) {
            throw new CallOrderException(
                    "the call was made before the capture, and a graph would receive it again and again; run its"
                            + " receive hook before the capture begins");
        }
        RunTrace trace = capturing ? null : observed[run]; // a replay would overwrite it
        prepareReceive(receives[place], place, trace);
        kernel.launch(launch, receives[place].memory(), state.stream);
        if (trace != null) {
            trace.received(bank);
        }
        event.record(capturing);
    }

    private static boolean isCaptured(int place) {
        return place >= RUNS;
    }

    /** Kernels count waits only where somebody wants to know. */
    private void prepareReceive(Params params, int place, RunTrace trace) {
        if (source.waitCostStats() == null && (trace != null) != countsWaits[place]) {
            countsWaits[place] = trace != null;
            params.set("wait_stats", trace == null ? 0 : state.waitStats.address());
        }
        if (trace != null) {
            trace.beforeReceive();
        }
    }
}
