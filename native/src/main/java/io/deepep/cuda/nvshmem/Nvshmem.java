package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.error.DeepEpException;
import io.deepep.error.NativeCallException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.function.LongSupplier;

/**
 * This process as a PE of NVSHMEM. At most one per process, at a time.
 *
 * <p>What is marked collective must be called by all PEs of the world in the same order. Any thread
 * may call; calls are made one after the other by a thread of NVSHMEM's own. A call that a missing
 * peer keeps from returning is given up after the timeout, and NVSHMEM cannot be used in this
 * process any more.
 *
 * <p>Closing it frees all memory that was not freed, and ends and unloads all modules.
 */
final class Nvshmem implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Nvshmem.class.getName());
    private static final int MIN_ALIGNMENT = 16;
    private static final String DEVICE_STATE = "nvshmemi_device_state_d";

    private final NvshmemProcess process;
    private final NvshmemLibrary library;
    private final NvshmemDevice device;
    private final NvshmemWorker worker;
    private final PeMap peMap;
    private final Set<Long> allocations = new LinkedHashSet<>();
    private final List<Registered> modules = new ArrayList<>();
    private boolean closed;

    /**
     * A module that is registered.
     *
     * @param handle throws if somebody has unloaded it
     * @param unload for later: NVSHMEM writes into modules as long as they are registered
     */
    private record Registered(LongSupplier handle, Runnable unload) {}

    Nvshmem(
            NvshmemProcess process,
            NvshmemLibrary library,
            NvshmemDevice device,
            NvshmemWorker worker,
            PeMap peMap) {
        this.process = process;
        this.library = library;
        this.device = device;
        this.worker = worker;
        this.peMap = peMap;
    }

    /**
     * Starts NVSHMEM on all ranks. Collective over the communicator, also for worlds of rails:
     * those start at the same time. If a rank cannot start, all of them throw.
     *
     * @param peMap this rank among the ranks, and what its world consists of
     * @param context of this rank's GPU
     * @param communicator of all ranks
     * @param timeout for this and for every later call
     * @throws io.deepep.error.DeepEpUnavailableException naming the ranks that cannot, with causes
     *     and cure
     * @throws io.deepep.error.RankMismatchException if ranks have different options or versions
     */
    static Nvshmem open(
            NvshmemInstallation installation,
            NvshmemOptions options,
            PeMap peMap,
            CudaContext context,
            Communicator communicator,
            Duration timeout) {
        NvshmemStartup startup =
                new NvshmemStartup(
                        NvshmemProcess.CURRENT,
                        installation,
                        options,
                        peMap,
                        NvshmemUserSettings.ofProcess(),
                        HostTopology.SYSFS);
        return startup.start(NvshmemDevice.of(context), communicator, timeout);
    }

    /**
     * Prepares for the end of the process, with or without the peers. Each start leaves a function
     * behind that runs when the process exits and takes down what is open; after two starts it
     * would run twice, and end the process with an error.
     */
    synchronized void endWithProcess() {
        if (closed) {
            return;
        }
        try {
            // With a lost context the call would end the process with an error.
            worker.run("cuCtxSynchronize", device::synchronize);
            worker.run("nvshmem_global_exit", library::globalExit);
        } catch (DeepEpException e) {
            LOG.log(System.Logger.Level.DEBUG, "NVSHMEM was not ended: {0}", e.getMessage());
        }
        giveUp("the process ends");
    }

    /** Whether it has been closed or given up. */
    synchronized boolean isClosed() {
        return closed;
    }

    /** Ranks and PEs. */
    PeMap peMap() {
        return peMap;
    }

    /**
     * Allocates from the symmetric heap: at the same offset on every PE. Collective, with the same
     * arguments; zeroing is left to the caller.
     *
     * @param alignment a power of two, at least 16
     * @return device address on this PE, which NVSHMEM's device functions take for every PE
     * @throws NativeCallException if there is not enough memory; peers may have got theirs
     */
    synchronized long allocate(long numBytes, long alignment) {
        if (numBytes <= 0) {
            throw new IllegalArgumentException("numBytes=" + numBytes + " is not positive");
        }
        if (alignment < MIN_ALIGNMENT || Long.bitCount(alignment) != 1) {
            throw new IllegalArgumentException(
                    "alignment=%s is not a power of two of at least %s"
                            .formatted(alignment, MIN_ALIGNMENT));
        }
        long address = call("nvshmem_align", () -> library.align(alignment, numBytes));
        if (address == 0) {
            throw NvshmemLibrary.failure(
                    "nvshmem_align",
                    NvshmemLibrary.OUT_OF_MEMORY,
                    device + ", " + numBytes + " bytes");
        }
        allocations.add(address);
        return address;
    }

    /** Frees an allocation, unless it has been freed already. Collective. */
    synchronized void free(long address) {
        if (!closed && allocations.remove(address)) {
            callWithoutResult("nvshmem_free", () -> library.free(address));
        }
    }

    /**
     * Device address through which this PE reaches a rank's part of an allocation directly, over
     * NVLink.
     *
     * @return empty if only NVSHMEM reaches it
     * @throws IllegalArgumentException if the rank is not in this world
     */
    OptionalLong peerAddress(long address, int rank) {
        int pe = peMap.peOf(rank);
        long peer = call("nvshmem_ptr", () -> library.pointer(address, pe));
        return peer == 0 ? OptionalLong.empty() : OptionalLong.of(peer);
    }

    /**
     * Meets all PEs over what carries data between them. Where the world holds several rails, this
     * library must number the ranks of a rail as NVSHMEM does. Collective.
     *
     * @throws IllegalStateException if it does not
     */
    void meet() {
        barrier();
        if (peMap.world() == PeMap.World.GLOBAL) {
            callWithoutResult("nvshmem_team_split_strided", this::compareRails);
        }
    }

    /** Asks a team of this rank's rail, unless NVSHMEM has no teams because PEs share a GPU. */
    private void compareRails() {
        if (library.initStatus() == NvshmemLibrary.STATUS_LIMITED_SHARING) {
            return;
        }
        EpTopology topology = peMap.topology();
        int team =
                library.teamSplit(
                        topology.nvlRank(),
                        topology.numNvlRanks(),
                        topology.numRdmaRanks(),
                        device.toString());
        int pe = library.teamMyPe(team);
        int numPes = library.teamNumPes(team);
        if (pe != topology.rdmaRank() || numPes != topology.numRdmaRanks()) {
            throw new IllegalStateException(
                    "NVSHMEM numbers rank %s as PE %s of %s in its rail, but it is rdmaRank %s of %s"
                            .formatted(
                                    topology.rank(),
                                    pe,
                                    numPes,
                                    topology.rdmaRank(),
                                    topology.numRdmaRanks()));
        }
        library.teamDestroy(team);
    }

    /**
     * Makes a loaded module's kernels part of this PE.
     *
     * @param module linked with NVSHMEM's device library; closed with this, and not before
     * @throws NativeCallException if it is not linked so, or with a newer version; the module is
     *     closed
     */
    void register(CudaModule module) {
        try {
            module.globalAddress(DEVICE_STATE);
            register(module::handle, module::close);
        } catch (RuntimeException | Error e) {
            module.close();
            throw e;
        }
    }

    synchronized void register(LongSupplier handle, Runnable unload) {
        long module = handle.getAsLong();
        String where = device.toString();
        callWithoutResult("nvshmemx_cumodule_init", () -> library.moduleInit(module, where));
        modules.add(new Registered(handle, unload));
    }

    /** Waits until all PEs have come here and all that they sent has arrived. Collective. */
    void barrier() {
        callWithoutResult("nvshmem_barrier_all", library::barrierAll);
    }

    /** In stream order: all that this PE's kernels sent has arrived. Returns at once. */
    void quiet(CudaStream stream) {
        quietOnStream(stream.handle());
    }

    void quietOnStream(long stream) {
        callWithoutResult("nvshmemx_quiet_on_stream", () -> library.quietOnStream(stream));
    }

    private synchronized <T> T call(String name, Callable<T> work) {
        if (closed) {
            throw new IllegalStateException("NVSHMEM is closed");
        }
        try {
            return worker.get(name, work);
        } finally {
            if (worker.isLost()) {
                giveUp(name + " did not return");
            }
        }
    }

    private void callWithoutResult(String name, Runnable work) {
        call(name, Executors.callable(work));
    }

    /**
     * Gives up without a word to the peers, for when some of them are gone: nothing is freed, and
     * NVSHMEM cannot be used in this process any more.
     */
    synchronized void abandon() {
        if (!closed) {
            giveUp("it was abandoned");
        }
    }

    private void giveUp(String reason) {
        closed = true;
        process.fail(reason);
        worker.close();
    }

    /**
     * Releases everything and ends NVSHMEM. Collective: if peers are gone, {@link #abandon}
     * instead. Idempotent.
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        try {
            // With a lost context the calls below would end the process.
            worker.run("cuCtxSynchronize", device::synchronize);
            for (Registered module : modules.reversed()) {
                worker.run(
                        "nvshmemx_cumodule_finalize",
                        () -> library.moduleFinalize(module.handle().getAsLong()));
            }
            allocations.forEach(address -> worker.run("nvshmem_free", () -> library.free(address)));
            worker.run("nvshmemx_hostlib_finalize", library::shutDown);
            closed = true;
            process.leave();
            worker.close();
            unloadModules();
        } catch (DeepEpException | IllegalStateException e) {
            giveUp(String.valueOf(e.getMessage()));
            LOG.log(System.Logger.Level.WARNING, "NVSHMEM was not ended: {0}", e.getMessage());
            unloadModules();
        }
    }

    private void unloadModules() {
        for (Registered module : modules.reversed()) {
            try {
                module.unload().run();
            } catch (DeepEpException e) {
                LOG.log(
                        System.Logger.Level.DEBUG,
                        "a module was not unloaded: {0}",
                        e.getMessage());
            }
        }
    }
}
