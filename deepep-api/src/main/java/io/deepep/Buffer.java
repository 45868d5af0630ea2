package io.deepep;

import io.deepep.observe.BufferObserver;
import io.deepep.spi.BufferProvider;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * The expert-parallel communication of one rank: dispatch sends tokens to the ranks that hold their
 * experts, and combine sums the experts' results on the ranks that the tokens came from.
 *
 * <p>Dispatch and combine are collective: every rank makes the same calls in the same order. A
 * buffer is not thread-safe: only one thread at a time may use it. Asynchronous calls run on {@link
 * #communicationStream()}. Results that are views of the buffer's memory belong to the buffer; each
 * call says how long they are valid.
 *
 * <p>Every call may throw
 *
 * <ul>
 *   <li>{@link IllegalArgumentException} for invalid arguments. Nothing was started: correct the
 *       arguments and repeat the call.
 *   <li>{@link IllegalStateException} on a closed or failed buffer, while another thread makes a
 *       call on it, in a mode that the buffer was opened without, and as {@code CallOrderException}
 *       for a low-latency call out of order: a hook that has already run, or a third call sent
 *       before the first has been received. Nothing was started here either.
 *   <li>{@link io.deepep.error.DeepEpException}: {@code RankMismatchException}, {@code
 *       RoutingException} and {@code CapacityExceededException} are thrown on every rank (by {@link
 *       #getDispatchLayout}, which is not collective, on its rank alone) and leave the buffer
 *       usable. After a {@code DeepEpTimeoutException} the buffer refuses further calls, unless it
 *       {@linkplain Builder#maskTimedOutRanks masks} the missing rank.
 * </ul>
 *
 * <p>On the host backend, interrupting a thread that waits for other ranks ends the wait with an
 * {@link IllegalStateException}. The thread's interrupt status stays set. In a dispatch or combine,
 * this rank is then out of step with the others, and the buffer refuses further calls.
 */
public interface Buffer extends AutoCloseable {
    /**
     * Returns a builder that opens a buffer for this rank.
     *
     * @param communicator this rank's end of the group; must stay open as long as the buffer
     */
    static Builder builder(Communicator communicator) {
        return new Builder(communicator);
    }

    /** Bytes of RDMA-visible memory that each rank needs for low-latency mode. */
    static long lowLatencyRdmaSizeHint(LowLatencyLimits limits, EpTopology topology) {
        return BufferProvider.load().lowLatencyRdmaBytes(limits, topology);
    }

    /** The options this buffer was opened with, including the chosen sizes and network. */
    BufferOptions options();

    /** This rank's place in the group. */
    default EpTopology topology() {
        return options().topology();
    }

    /**
     * Counts how many of this rank's tokens go to each rank and each expert. Does not communicate,
     * and blocks until the counts are ready.
     *
     * @param topkIdx I64 [T,K], contiguous, -1 for no selection
     * @param numExperts experts of all ranks, a multiple of the number of ranks
     * @return new tensors, freed when they become unreachable
     */
    default DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts) {
        return getDispatchLayout(topkIdx, numExperts, CallOptions.sync());
    }

    /** As {@link #getDispatchLayout(Tensor, int)}, after the work that {@code options} names. */
    DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts, CallOptions options);

    /** Sends tokens to the ranks that hold their experts, with {@link CallOptions#sync()}. */
    default DispatchResult dispatch(DispatchPlan plan) {
        return dispatch(plan, CallOptions.sync());
    }

    /**
     * Sends tokens to the ranks that hold their experts. Even an asynchronous call blocks until the
     * number of received rows is known, except in {@linkplain DispatchPlan.Builder#numWorstTokens
     * worst-case mode}.
     */
    DispatchResult dispatch(DispatchPlan plan, CallOptions options);

    /** Sums what the ranks computed for this rank's tokens, with {@link CallOptions#sync()}. */
    default CombineResult combine(CombinePlan plan) {
        return combine(plan, CallOptions.sync());
    }

    /** Sums what the ranks computed for this rank's tokens. */
    CombineResult combine(CombinePlan plan, CallOptions options);

    /**
     * The buffer's own memory for combine inputs, BF16 [N,H] for {@code handle}. Rows computed into
     * it are combined without a copy. Every handle gets the same memory; it is valid until the next
     * normal dispatch on the buffer.
     *
     * @throws IllegalArgumentException if {@code handle} is expanded
     */
    Tensor getCombineBuffer(DispatchHandle handle);

    /**
     * The same memory for rows in FP8: codes [N,H], and behind those of each row its scales
     * [N,H/128]. A plan that is given {@linkplain CombinePlan.Builder#scales both tensors} combines
     * them without a cast or a copy. Like any input, rows must be written before the call in the
     * order of its stream; what lies between them does not matter.
     *
     * @throws IllegalArgumentException if H is not a multiple of 128, or {@code handle} is expanded
     */
    ScaledRows getFp8CombineBuffer(DispatchHandle handle);

    /** Dispatches in low-latency mode, with {@link CallOptions#sync()}. */
    default LowLatencyDispatchResult lowLatencyDispatch(LowLatencyDispatchPlan plan) {
        return lowLatencyDispatch(plan, CallOptions.sync());
    }

    /** Dispatches in low-latency mode; with a receive hook, runs only the send half. */
    LowLatencyDispatchResult lowLatencyDispatch(LowLatencyDispatchPlan plan, CallOptions options);

    /** Combines in low-latency mode, with {@link CallOptions#sync()}. */
    default LowLatencyCombineResult lowLatencyCombine(LowLatencyCombinePlan plan) {
        return lowLatencyCombine(plan, CallOptions.sync());
    }

    /** Combines in low-latency mode; with a receive hook, runs only the send half. */
    LowLatencyCombineResult lowLatencyCombine(LowLatencyCombinePlan plan, CallOptions options);

    /**
     * The buffer's own memory for combine inputs, BF16 [El, R*maxTokens, H] for {@code handle},
     * with H = {@link LowLatencyLimits#hidden}. Rows computed into it are combined in place. Valid
     * as long as {@code handle}.
     */
    Tensor getLowLatencyCombineBuffer(LowLatencyHandle handle);

    /**
     * Discards all low-latency calls in flight, after waiting for all ranks. Collective. Use it to
     * return to a known state after an engine has abandoned calls; it is never needed between
     * normal and low-latency calls, whose memory is separate. Earlier low-latency handles and
     * results become invalid.
     */
    void cleanLowLatencyBuffer();

    /**
     * Masks (true) or unmasks (false) a rank in both modes: calls neither send to a masked rank nor
     * wait for it. No rows come from it, and selections of its experts are ignored. This also
     * applies to captured graphs. This method waits for calls and replays in flight.
     *
     * <p><b>Normal mode.</b> All remaining ranks must mask the same ranks between the same two
     * calls; a call of ranks with different masks is refused on all of them. Combines and cached
     * dispatches with a handle from before the masks changed are refused too: dispatch its plan
     * again first. Across nodes, a token whose forwarder is masked goes through another rank of
     * that node. If several ranks of a node are masked, there may be no such rank for some tokens;
     * their selections on that node are then ignored too. On several nodes of GPUs, normal mode can
     * mask ranks only if all GPUs reach each other's memory, or if the {@link Network} was opened
     * with masks.
     *
     * <p><b>Low-latency mode.</b> Each rank may mask others at any time; they wait for it unless
     * they mask it too. One that kept making the same calls meanwhile can be unmasked at any time.
     *
     * <p>With {@link Builder#maskTimedOutRanks}, a rank that does not come in time is masked. In
     * low-latency mode the call continues without it; as each rank finds out by itself, it is
     * masked in that mode alone, and normal mode would wait for it once more: call this method for
     * it on all others. In normal mode the call fails on all others with a {@code
     * DeepEpTimeoutException} that names it; the buffer stays usable, and calls of both modes can
     * be made without the rank. If several ranks did not come, ranks that the exception does not
     * name may be masked too. If the remaining ranks have masked different ranks, their next call
     * is refused once with a {@code RankMismatchException}, and they adopt each other's masks. Make
     * sure that a masked rank is dead, or end its process: a rank that was stopped while it sent
     * rows in normal mode, and continues later, overwrites rows of later calls.
     *
     * <p>A rank that was masked by a time-out, or that made no calls while it was masked, is out of
     * step. {@link #rejoin} brings it back; {@link #admit} replaces a dead rank by a new process.
     *
     * @param rank 0 to R - 1; a rank cannot mask itself
     * @param masked true to mask, false to unmask
     * @throws UnsupportedOperationException if the buffer has only normal mode, and runs on GPUs of
     *     several nodes that are connected by a network without masks
     */
    void updateMask(int rank, boolean masked);

    /**
     * Which ranks are masked in either mode, by {@link #updateMask} or a time-out: a new array [R]
     * with 1 for masked ranks and 0 for others.
     */
    int[] queryMask();

    /**
     * Unmasks all ranks, after all of them have met here. Collective: masked ranks take part too.
     * Discards all calls in flight; the ranks then make their next calls together. Earlier
     * low-latency handles become invalid; normal ones are refused if ranks were masked when they
     * were made, until their plan is dispatched again.
     */
    void rejoin();

    /**
     * Replaces ranks that are gone by new processes (or threads). Collective: the remaining ranks
     * call this, and the new ones {@link Builder#join}. All of them meet in a new group, in which
     * each remaining rank keeps its number, and each new rank has the number of the rank that it
     * replaces. Afterwards no rank is masked, and all make their next calls together. The remaining
     * ranks keep the buffer with its memory, plans and captured graphs; the new ranks' memory takes
     * the place of the dead ranks'. Earlier handles become invalid.
     *
     * <pre>{@code
     * // where rank 3 was masked                        // in the new process
     * Communicator group = ...;                         Communicator group = ...; // as rank 3
     * buffer.admit(group);                              Buffer buffer = Buffer.builder(group)
     *                                                           .normal(limits).join();
     * }</pre>
     *
     * <p>Several ranks can be replaced at once, rank 0 included. If none is replaced, the same
     * ranks move to a new group, for example after the network between them has failed.
     *
     * <p>If this throws, the buffer stays in its old group with its old masks, and the call can be
     * repeated with another new group. If a new rank is lost at the last moment, some of the others
     * may already have admitted it: their next call then names the missing rank, and all ranks can
     * meet in another new group. Once this method has returned, the buffer no longer uses the old
     * group. Make sure that the replaced ranks are dead: see {@link #updateMask}.
     *
     * @param group the new group, of the same size; must stay open as long as this buffer
     * @throws IllegalArgumentException if {@code group} has a different size, or this rank a
     *     different number in it
     * @throws UnsupportedOperationException if ranks of this buffer cannot be masked, or its memory
     *     cannot be replaced: where NVSHMEM connects the nodes, and on GPUs whose memory processes
     *     share through CUDA IPC; the other ranks get a {@code RankMismatchException}
     * @throws io.deepep.error.RankMismatchException on all ranks, if a new rank gave other options
     * @throws io.deepep.error.DeepEpUnavailableException on all ranks, if a rank cannot reach the
     *     memory of another
     * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is named
     */
    void admit(Communicator group);

    /** The stream of asynchronous calls: {@link Builder#communicationStream}, or one of its own. */
    Stream communicationStream();

    /** Marks the current end of {@code stream}, for {@link CallOptions#after}. */
    static Event capture(Stream stream) {
        return stream.record();
    }

    /**
     * A one-dimensional view of this rank's buffer memory, valid until the buffer is closed.
     *
     * @param dtype element type
     * @param numElements length of the view, in elements
     * @param offset where the view begins, in bytes; a multiple of the element size
     * @param rdma true for the RDMA buffer, false for the NVL buffer
     * @throws IllegalArgumentException if {@code offset} is not such a multiple, or the view does
     *     not lie within the buffer
     */
    Tensor getLocalBufferTensor(DType dtype, long numElements, long offset, boolean rdma);

    /**
     * Closes the buffer, and releases its memory once no peer uses it. Calls in flight finish or
     * fail first; other ranks are not waited for. Idempotent.
     *
     * <p>If a rank leaves a buffer open, closing an {@link InProcessGroup} closes the buffer with a
     * warning, provided that the thread that opened it has ended. On the host, the memory is also
     * freed when the buffer, its plans and its results are unreachable, or when the process ends.
     *
     * @throws IllegalStateException within a call of the buffer, by an observer of any buffer, or
     *     while the communication stream is being captured
     */
    @Override
    void close();

    /** Collects the options of a {@link Buffer}, and opens it. */
    final class Builder {
        private final GivenOptions given;

        private Builder(Communicator communicator) {
            this.given = new GivenOptions(communicator);
        }

        /**
         * Ranks per node (a node is an NVLink domain): 1 to {@value EpTopology#MAX_NVL_RANKS}. By
         * default, a node is the ranks whose GPUs share an NVLink domain, if all GPUs are in
         * domains that may span hosts; otherwise the ranks of one host ({@link
         * Communicator#localSize}). Domains and hosts with more ranks than a node can have are
         * divided into equal nodes. Either all ranks call this, with the same number, or none does.
         *
         * @throws IllegalArgumentException if {@code number} is out of range
         */
        public Builder ranksPerNode(int number) {
            given.ranksPerNode = EpTopology.requireNodeSize("ranksPerNode", number);
            return this;
        }

        /**
         * The device that this rank's tensors are on; the host by default. It also decides the
         * backend: Java moves the bytes on {@link Device#host}, CUDA kernels on {@link
         * Device#cuda}.
         */
        public Builder device(Device where) {
            given.device = Objects.requireNonNull(where, "device");
            return this;
        }

        /**
         * Runs calls on the engine's own stream instead of one of the buffer's. Synchronous calls
         * {@linkplain CallOptions#on on} that stream are then in order with the engine's kernels
         * without any events, and overlap nothing. The engine must not destroy the stream before
         * the buffer is closed, and must give each rank a different one.
         *
         * @param stream of this rank's device; one of a CUDA green context keeps calls on that part
         */
        public Builder communicationStream(Stream stream) {
            given.communicationStream = Objects.requireNonNull(stream, "stream");
            return this;
        }

        /** How GPUs of different nodes reach each other; {@link Network#auto} by default. */
        public Builder network(Network which) {
            given.network = Objects.requireNonNull(which, "network");
            return this;
        }

        /** Enables normal mode for shapes up to these limits. */
        public Builder normal(NormalLimits limits) {
            given.normal = limits;
            return this;
        }

        /** Enables low-latency mode for these limits. */
        public Builder lowLatency(LowLatencyLimits limits) {
            given.lowLatency = limits;
            return this;
        }

        /**
         * Size of the NVL buffer in bytes. The minimum, and the default (0), is {@link
         * Config#nvlBufferSizeHint} of the configuration that {@linkplain Config#covering covers}
         * those of dispatch and combine.
         */
        public Builder numNvlBytes(long bytes) {
            given.numNvlBytes = bytes;
            return this;
        }

        /**
         * Size of the RDMA buffer in bytes. The minimum, and the default (0), is the sum of {@link
         * Config#rdmaBufferSizeHint} of the configuration that {@linkplain Config#covering covers}
         * those of dispatch and combine, and {@link Buffer#lowLatencyRdmaSizeHint}.
         */
        public Builder numRdmaBytes(long bytes) {
            given.numRdmaBytes = bytes;
            return this;
        }

        /**
         * Configuration of normal dispatches; {@link #profile} describes the default. The same on
         * every rank.
         */
        public Builder dispatchConfig(Config config) {
            given.dispatchConfig = config;
            return this;
        }

        /** Configuration of normal combines, as {@link #dispatchConfig} of dispatches. */
        public Builder combineConfig(Config config) {
            given.combineConfig = config;
            return this;
        }

        /**
         * Takes the default numbers of multiprocessors of normal mode from a {@link MachineProfile}
         * that {@code deepep bench normal --profile FILE} wrote on such a machine. A configuration
         * given by {@link #dispatchConfig} or {@link #combineConfig} takes precedence. By default
         * the file is the one that the system property {@code deepep.profile} names; without that
         * property, and on the host, {@link NormalDefaults} apply. The same on every rank. A file
         * for other GPUs, or for one node where the group has several, is refused when the buffer
         * opens.
         *
         * @throws IllegalArgumentException if the file cannot be read, or is not a profile
         */
        public Builder profile(Path file) {
            given.profile = ProfileFile.read(file);
            return this;
        }

        /**
         * How long to wait for a peer before a call fails, at most 365 days; 30 s by default. The
         * limit applies to each wait of a call, except those that {@link #startTimeout} limits.
         */
        public Builder timeout(Duration limit) {
            given.timeout = BufferOptions.requireTimeout("timeout", limit);
            return this;
        }

        /**
         * How long to wait until the other ranks begin a call, at most 365 days; by default the
         * call's {@link #timeout}. A long start time-out lets ranks begin a call at different
         * times, while a short time-out still detects soon that a rank was lost within a call. The
         * start time-out also limits how long to wait for all ranks when they open the buffer,
         * rejoin, admit or clean.
         */
        public Builder startTimeout(Duration limit) {
            given.startTimeout = BufferOptions.requireTimeout("startTimeout", limit);
            return this;
        }

        /**
         * Masks a rank that does not come in time: low-latency calls continue without it; a call of
         * normal mode fails, and later calls continue without the rank. Off by default. See {@link
         * Buffer#updateMask} for the effects of masks and what it does for the other mode, and
         * {@link Buffer#rejoin} for how the rank comes back.
         */
        public Builder maskTimedOutRanks(boolean on) {
            given.maskTimedOutRanks = on;
            return this;
        }

        /**
         * Adds an observer of every call, for example to update meters. With observers, calls
         * allocate a little memory. Events of Java Flight Recorder need no observer.
         */
        public Builder observer(BufferObserver observer) {
            given.observers.add(Objects.requireNonNull(observer, "observer"));
            return this;
        }

        /**
         * Opens the buffer. Collective: all ranks call it, with the same options. Only GPU, stream,
         * observers, NICs, interfaces and time-outs are not compared; time-outs should be equal.
         *
         * @throws IllegalArgumentException if this rank's options contradict each other
         * @throws io.deepep.error.RankMismatchException on every rank, if the ranks' options differ
         * @throws OutOfMemoryError on the host, if this rank has too little memory for the limits
         * @throws io.deepep.error.DeepEpUnavailableException if the device or the network cannot be
         *     used, the GPU has too little memory for the limits, or another rank has
         * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is
         *     named
         */
        public Buffer open() {
            return given.open();
        }

        /**
         * Opens the buffer in the place of a rank that is gone, while the remaining ranks keep
         * theirs. Collective: the remaining ranks call {@link Buffer#admit}, which describes the
         * requirements. Throws what {@link #open} throws, for the same reasons, and {@code
         * DeepEpUnavailableException} also if ranks cannot reach each other's memory.
         */
        public Buffer join() {
            return given.join();
        }
    }
}
