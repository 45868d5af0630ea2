package io.deepep;

import io.deepep.observe.BufferObserver;
import io.deepep.spi.BufferProvider;
import io.deepep.spi.NodeSize;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * One rank's end of the expert-parallel communication: dispatch sends tokens to the ranks of their
 * experts, combine brings the results back.
 *
 * <p>Calls are collective: every rank makes the same calls in the same order. One thread at a time,
 * the rank, uses a buffer; asynchronous calls run on {@link #communicationStream()}. Memory handed
 * out as views belongs to the buffer.
 *
 * <p>Every call may throw
 *
 * <ul>
 *   <li>{@link IllegalArgumentException} for invalid arguments. Nothing was started: correct the
 *       call and repeat it.
 *   <li>{@link IllegalStateException} on a closed or failed buffer, and for a low-latency call out
 *       of order: a hook that has already run, or a third call sent before the first has been
 *       received. Nothing was started either.
 *   <li>{@link io.deepep.error.DeepEpException}: {@code RankMismatchException}, {@code
 *       RoutingException} and {@code CapacityExceededException} reach every rank and leave the
 *       buffer usable; after a {@code DeepEpTimeoutException} the buffer refuses further calls.
 * </ul>
 *
 * <p>On the host backend, interrupting a thread ends its wait for other ranks with an {@link
 * IllegalStateException}; the thread stays interrupted, and the buffer refuses further calls, since
 * this rank is out of step.
 */
public interface Buffer extends AutoCloseable {
    /** Starts to open a buffer. */
    static Builder builder(Communicator communicator) {
        return new Builder(communicator);
    }

    /** Bytes of RDMA-visible memory each rank needs for low-latency mode. */
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
     * Counts how many of this rank's tokens each rank and expert gets.
     *
     * @param topkIdx I64 [T,K], contiguous, -1 for no selection
     * @param numExperts a multiple of the number of ranks
     * @return new tensors, owned by the garbage collector
     */
    default DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts) {
        return getDispatchLayout(topkIdx, numExperts, CallOptions.sync());
    }

    /** {@link #getDispatchLayout(Tensor, int)}, ordered by {@code options}. */
    DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts, CallOptions options);

    /** Sends tokens to the ranks of their experts, synchronously. */
    default DispatchResult dispatch(DispatchPlan plan) {
        return dispatch(plan, CallOptions.sync());
    }

    /**
     * Sends tokens to the ranks of their experts. Blocks until the number of received rows is
     * known, except in worst-case mode.
     */
    DispatchResult dispatch(DispatchPlan plan, CallOptions options);

    /** Sums what the ranks computed for this rank's tokens, synchronously. */
    default CombineResult combine(CombinePlan plan) {
        return combine(plan, CallOptions.sync());
    }

    /** Sums what the ranks computed for this rank's tokens. */
    CombineResult combine(CombinePlan plan, CallOptions options);

    /**
     * The buffer's memory for combine inputs, BF16 [N,H] for {@code handle}: rows computed into it
     * are combined without staging. Valid until the next normal dispatch on the buffer; the same
     * memory for every handle.
     */
    Tensor getCombineBuffer(DispatchHandle handle);

    /** Low-latency dispatch, synchronously (with a hook: its send half). */
    default LowLatencyDispatchResult lowLatencyDispatch(LowLatencyDispatchPlan plan) {
        return lowLatencyDispatch(plan, CallOptions.sync());
    }

    /** Low-latency dispatch. */
    LowLatencyDispatchResult lowLatencyDispatch(LowLatencyDispatchPlan plan, CallOptions options);

    /** Low-latency combine, synchronously (with a hook: its send half). */
    default LowLatencyCombineResult lowLatencyCombine(LowLatencyCombinePlan plan) {
        return lowLatencyCombine(plan, CallOptions.sync());
    }

    /** Low-latency combine. */
    LowLatencyCombineResult lowLatencyCombine(LowLatencyCombinePlan plan, CallOptions options);

    /**
     * The buffer's memory for combine inputs, BF16 [El, R*maxTokens, H] for {@code handle}: rows
     * computed into it are combined from there. Valid as long as {@code handle}.
     */
    Tensor getLowLatencyCombineBuffer(LowLatencyHandle handle);

    /**
     * Collective: waits for all ranks, then discards all low-latency state in flight. Never needed
     * between normal and low-latency calls (their memory is separate); it restores a known state
     * after an engine has abandoned calls. Earlier handles and results become invalid.
     */
    void cleanLowLatencyBuffer();

    /**
     * Masks (true) or unmasks a rank, in both modes: calls neither send to nor wait for a masked
     * rank. Its tokens and results count as absent: no rows come from it, and selections of its
     * experts are ignored. This also applies to captured graphs.
     *
     * <p><b>Normal mode.</b> All remaining ranks mask the same ranks between the same two calls; a
     * call of ranks with different masks is refused on all of them. So are combines and cached
     * dispatches with a handle from before the masks changed: dispatch its plan again. This method
     * waits for calls in flight. Across nodes, a token whose forwarder is masked goes through
     * another rank of that node. If several ranks of a node are masked, some tokens may find none;
     * their selections on that node then count as absent too. On several nodes of GPUs, normal mode
     * can mask ranks only if all GPUs reach each other's memory, or over {@link Network#ibgda} with
     * masks.
     *
     * <p><b>Low-latency mode.</b> Each rank may mask others at any time. A rank that kept making
     * the same calls while it was masked can be unmasked at any time.
     *
     * <p>With {@link Builder#maskTimedOutRanks}, a rank that does not come in time is masked. In
     * low-latency mode the call continues without it. In normal mode the call fails on all others
     * with a {@code DeepEpTimeoutException} that names it; the buffer stays usable, and the call
     * can be repeated without the rank. If several ranks did not come, others that are not named
     * may be masked too. If ranks have masked different ones, the next call is refused once with a
     * {@code RankMismatchException}, and they adopt each other's masks. Make sure that a masked
     * rank is dead, or end its process: one that was stopped while it sent rows in normal mode, and
     * continues later, overwrites rows of later calls.
     *
     * <p>A rank that was masked by a time-out, or made no calls, is out of step. It comes back with
     * {@link #rejoin}; a new process takes the place of a dead one with {@link #admit}.
     *
     * @throws UnsupportedOperationException if the buffer has only normal mode, and runs on GPUs of
     *     several nodes that a network connects without masks
     */
    void updateMask(int rank, boolean masked);

    /**
     * Which ranks are masked, by {@link #updateMask} or a time-out, in either mode: [R], 1 for
     * masked; a copy.
     */
    int[] queryMask();

    /**
     * Collective, masked ranks included: waits for all ranks, discards whatever is in flight, and
     * unmasks all. The ranks then make their next calls together. Earlier handles count as those of
     * a dispatch with other masks, and low-latency ones are invalid.
     */
    void rejoin();

    /**
     * Takes new processes (or threads) into the places of ranks that are gone. Collective: the
     * remaining ranks call this, and the new ones {@link Builder#join}. All ranks meet in a new
     * group. In it, each remaining rank has its old number, and each new one that of the rank that
     * it replaces. Then no rank is masked, and all make their next calls together. The remaining
     * ranks keep the buffer and its memory, plans, and graphs, which find the new ranks' memory
     * where that of the dead ones was. Earlier handles are no longer valid.
     *
     * <pre>{@code
     * // where rank 3 was masked                        // in the new process
     * Communicator group = ...;                         Communicator group = ...; // as rank 3
     * buffer.admit(group);                              Buffer buffer = Buffer.builder(group)
     *                                                           .normal(limits).join();
     * }</pre>
     *
     * <p>Several ranks can be replaced at once, or none: then the same ranks move to a new group,
     * for example after a failure of the network between them. Rank 0 is like any other.
     *
     * <p>If this throws, the buffer stays in its old group, with its old masks, and the call can be
     * repeated in another new group. If a new rank is lost at the last moment, some of the others
     * may already have admitted it: their next call then names the missing rank, and another new
     * group brings all together. Once this has returned, nothing here uses the old group.
     *
     * <p>Make sure that the replaced ranks are dead: see {@link #updateMask}.
     *
     * @param group with as many ranks as this one's; must stay open as long as this buffer
     * @throws IllegalArgumentException if it has another size, or this rank has another number
     *     there
     * @throws UnsupportedOperationException if ranks of this buffer cannot be masked, or its memory
     *     cannot be replaced: where NVSHMEM connects the nodes, and on GPUs whose memory processes
     *     share by CUDA IPC; the others get a {@code RankMismatchException}
     * @throws io.deepep.error.RankMismatchException on all ranks, if a new one gave other options
     * @throws io.deepep.error.DeepEpUnavailableException on all ranks, if one cannot reach the
     *     memory of another
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    void admit(Communicator group);

    /** The stream that asynchronous calls run on, the engine's if it gave one. */
    Stream communicationStream();

    /** Marks the current end of {@code stream}, for {@link CallOptions#after}. */
    static Event capture(Stream stream) {
        return stream.record();
    }

    /**
     * A flat view of this rank's buffer memory.
     *
     * @param offset in bytes, a multiple of the element size
     * @param rdma the RDMA buffer instead of the NVL buffer
     */
    Tensor getLocalBufferTensor(DType dtype, long numElements, long offset, boolean rdma);

    /**
     * Releases this rank's memory once no peer uses it. Does not wait for other ranks to close;
     * calls in flight finish or fail first. Idempotent.
     *
     * <p>If a rank leaves a buffer open, an {@link InProcessGroup} closes it, with a warning, when
     * the group closes and the thread that opened the buffer has ended. On the host its memory is
     * also freed when the buffer, its plans and its results are no longer reachable, or when the
     * process ends.
     */
    @Override
    void close();

    /** Collects the options of a {@link Buffer}. */
    final class Builder {
        private final GivenOptions given;

        private Builder(Communicator communicator) {
            this.given = new GivenOptions(communicator);
        }

        /**
         * Ranks per node, which is an NVLink domain: 1 to {@value EpTopology#MAX_NVL_RANKS}, as far
         * as {@link GroupLimits} allows. By default, a node is the ranks whose GPUs are in one
         * NVLink domain, if all GPUs are in domains that may span hosts; otherwise the ranks of one
         * host ({@link Communicator#localSize}). Larger ones are divided. All ranks give it, or
         * none does.
         */
        public Builder ranksPerNode(int number) {
            if (number < 1) {
                throw new IllegalArgumentException(
                        "ranksPerNode=" + number + " must be at least 1");
            }
            given.ranksPerNode = number;
            return this;
        }

        /**
         * Where this rank's tensors lie; the host by default. The device decides what moves the
         * bytes: Java on {@link Device#host}, CUDA kernels on {@link Device#cuda}.
         */
        public Builder device(Device where) {
            given.device = where;
            return this;
        }

        /**
         * Runs calls on the engine's own stream instead of one of the buffer's. Synchronous calls
         * {@linkplain CallOptions#on on} that stream are then in order with the engine's kernels
         * without any events; nothing overlaps. The engine keeps the stream until the buffer is
         * closed, and gives each rank a different one.
         *
         * @param stream of this rank's device
         */
        public Builder communicationStream(Stream stream) {
            given.communicationStream = Objects.requireNonNull(stream, "stream");
            return this;
        }

        /** How GPUs of different nodes reach each other; {@link Network#auto} by default. */
        public Builder network(Network which) {
            given.network = which;
            return this;
        }

        /** Allows normal mode up to these shapes. */
        public Builder normal(NormalLimits limits) {
            given.normal = limits;
            return this;
        }

        /** Allows low-latency mode with these shapes. */
        public Builder lowLatency(LowLatencyLimits limits) {
            given.lowLatency = limits;
            return this;
        }

        /**
         * Size of the NVL buffer; at least {@link Config#nvlBufferSizeHint} of the configuration
         * that {@linkplain Config#covering covers} dispatch and combine, which is the default.
         */
        public Builder numNvlBytes(long bytes) {
            given.numNvlBytes = bytes;
            return this;
        }

        /**
         * Size of the RDMA buffer; at least the sum, which is the default, of {@link
         * Config#rdmaBufferSizeHint} of the configuration that {@linkplain Config#covering covers}
         * dispatch and combine, and {@link Buffer#lowLatencyRdmaSizeHint}.
         */
        public Builder numRdmaBytes(long bytes) {
            given.numRdmaBytes = bytes;
            return this;
        }

        /** Configuration of normal dispatches; by default what {@link #profile} says. */
        public Builder dispatchConfig(Config config) {
            given.dispatchConfig = config;
            return this;
        }

        /** Configuration of normal combines; by default what {@link #profile} says. */
        public Builder combineConfig(Config config) {
            given.combineConfig = config;
            return this;
        }

        /**
         * Takes the numbers of multiprocessors of normal mode from a {@link MachineProfile}, which
         * {@code deepep bench normal --profile FILE} wrote on such a machine. A configuration that
         * is given wins over it. By default the file is the one that the system property {@code
         * deepep.profile} names; without it, or on the host, they are {@link NormalDefaults}. The
         * same on every rank. A file for other GPUs, or for one node where the group has several,
         * is refused when the buffer opens.
         *
         * @throws IllegalArgumentException if the file cannot be read, or is no profile
         */
        public Builder profile(Path file) {
            given.profile = ProfileFile.read(file);
            return this;
        }

        /**
         * How long to wait for a peer before a call fails, up to 365 days; 30 s by default. It
         * limits each wait of a call except those that {@link #startTimeout} limits.
         */
        public Builder timeout(Duration limit) {
            given.timeout = limit;
            return this;
        }

        /**
         * How long to wait until the others begin a call, up to 365 days; by default as long as the
         * call's {@link #timeout}. A long start time-out lets ranks begin at different times,
         * because they compute for different times; with a short time-out, a rank that is lost
         * within a call is still found soon. It also limits how long to wait until all ranks open
         * the buffer, rejoin, admit or clean it.
         */
        public Builder startTimeout(Duration limit) {
            given.startTimeout = BufferOptions.requireTimeout("startTimeout", limit);
            return this;
        }

        /**
         * Masks a rank that does not come in time: low-latency calls continue without it; a call of
         * normal mode fails, and the next ones continue. Off by default. {@link Buffer#updateMask}
         * and {@link Buffer#rejoin} say what that means, and how the rank comes back.
         */
        public Builder maskTimedOutRanks(boolean on) {
            given.maskTimedOutRanks = on;
            return this;
        }

        /**
         * Adds an observer that sees every call, such as meters. With observers, calls allocate a
         * little. JFR events need none.
         */
        public Builder observer(BufferObserver observer) {
            given.observers.add(Objects.requireNonNull(observer, "observer"));
            return this;
        }

        /**
         * Opens the buffer: collective. If ranks gave different options, all of them learn of it
         * here.
         *
         * @throws IllegalArgumentException if this rank's options do not fit together
         * @throws io.deepep.error.RankMismatchException if the ranks' options differ
         * @throws io.deepep.error.DeepEpUnavailableException if the device or the network cannot be
         *     used here
         */
        public Buffer open() {
            BufferProvider provider = BufferProvider.load();
            return provider.open(given.agreed(provider, NodeSize.Call.OPEN));
        }

        /**
         * Opens the buffer in the place of a rank that is gone, while the other ranks keep theirs:
         * collective with their {@link Buffer#admit}, which says what is needed.
         *
         * @throws IllegalArgumentException if this rank's options do not fit together
         * @throws io.deepep.error.RankMismatchException if they differ from those of the others
         * @throws io.deepep.error.DeepEpUnavailableException if the device cannot be used here, or
         *     ranks cannot reach each other's memory
         */
        public Buffer join() {
            BufferProvider provider = BufferProvider.load();
            return provider.join(given.agreed(provider, NodeSize.Call.JOIN));
        }
    }
}
