package io.deepep;

import io.deepep.observe.BufferObserver;
import io.deepep.spi.BufferProvider;
import io.deepep.spi.NodeSize;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * One rank's end of the expert-parallel communication: dispatch sends tokens to the ranks of their
 * experts, combine brings the results back.
 *
 * <p>Calls are collective: every rank makes the same calls in the same order. A buffer is used by
 * one thread at a time (its rank); asynchronous calls run on {@link #communicationStream()}. Memory
 * handed out as views belongs to the buffer.
 *
 * <p>Every call may throw {@link IllegalArgumentException} for arguments that do not fit (nothing
 * was started: correct the call and repeat it), {@link IllegalStateException} on a closed or failed
 * buffer or for a low-latency call out of order (nothing was started either: a hook that has run,
 * or a third call sent before the first has been received), and the {@link
 * io.deepep.error.DeepEpException}s: {@code RankMismatchException}, {@code RoutingException} and
 * {@code CapacityExceededException} reach every rank and leave the buffer usable; after a {@code
 * DeepEpTimeoutException} the buffer refuses further calls.
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

    /** What this buffer was opened with, sizes and network filled in. */
    BufferOptions options();

    /** This rank's place in the group. */
    default EpTopology topology() {
        return options().topology();
    }

    /**
     * Counts who gets how many tokens.
     *
     * @param topkIdx I64 [T,K], contiguous, -1 for no selection
     * @param numExperts a multiple of the number of ranks
     * @return new tensors, owned by the garbage collector
     */
    default DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts) {
        return getDispatchLayout(topkIdx, numExperts, CallOptions.sync());
    }

    /** {@link #getDispatchLayout(Tensor, int)} with ordering. */
    DispatchLayout getDispatchLayout(Tensor topkIdx, int numExperts, CallOptions options);

    /** Sends tokens to the ranks of their experts, synchronously. */
    default DispatchResult dispatch(DispatchPlan plan) {
        return dispatch(plan, CallOptions.sync());
    }

    /**
     * Sends tokens to the ranks of their experts. Blocks until the received count is known, in
     * worst-case mode not even that.
     */
    DispatchResult dispatch(DispatchPlan plan, CallOptions options);

    /** Sums what the ranks computed for this rank's tokens, synchronously. */
    default CombineResult combine(CombinePlan plan) {
        return combine(plan, CallOptions.sync());
    }

    /** Sums what the ranks computed for this rank's tokens. */
    CombineResult combine(CombinePlan plan, CallOptions options);

    /**
     * The buffer's memory for combine inputs, BF16 [N,H] for {@code handle}: what is computed into
     * it is combined without staging. Valid until the next normal dispatch on the buffer; the same
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
     * The buffer's memory for combine inputs, BF16 [El, R*maxTokens, H] for {@code handle}: what is
     * computed into it is combined from there. Valid as long as {@code handle}.
     */
    Tensor getLowLatencyCombineBuffer(LowLatencyHandle handle);

    /**
     * Collective: waits for all ranks, then forgets whatever low-latency state is in flight. Never
     * needed between normal and low-latency calls (their memory is separate); it restores a known
     * state after an engine abandoned calls midway. Handles and results from before become invalid.
     */
    void cleanLowLatencyBuffer();

    /**
     * Masks (true) or unmasks a rank, in both modes: calls neither send to nor wait for a masked
     * rank. Its tokens and results count as absent: no rows come from it, and selections of its
     * experts are ignored. Graphs go on as calls do.
     *
     * <p><b>Normal mode.</b> All ranks that go on mask the same ranks between the same two calls; a
     * call of ranks with different masks is refused on all of them. So are combines and cached
     * dispatches whose handle is of a dispatch with other masks: dispatch its plan again. This
     * method waits for calls under way. Across nodes, a token whose forwarder is masked goes by
     * another rank of the node; if several ranks of one node are masked, there may be none for some
     * tokens, whose selections on that node then count as absent too. On GPUs, normal mode masks
     * ranks only of nodes of at most 8, and of several nodes only where all GPUs reach each other's
     * memory, not over a network.
     *
     * <p><b>Low-latency mode.</b> Each rank may mask others at any time. A rank that kept making
     * the same calls while it was masked can be unmasked at any time.
     *
     * <p>With {@link Builder#maskTimedOutRanks} a rank that does not come in time is masked. In
     * low-latency mode the call goes on without it. In normal mode the call fails on all others
     * with a {@code DeepEpTimeoutException} that names it; the buffer stays usable, and the call
     * can be repeated without the rank. If several did not come, others that are not named may be
     * masked too; where ranks have masked different ones, the next call is refused once with a
     * {@code RankMismatchException}, and they take over each other's masks. See that such a rank is
     * dead, or end its process: one that was stopped while it sent rows in normal mode, and goes on
     * later, writes over rows of later calls.
     *
     * <p>A rank that was masked by a time-out, or stayed away, is out of step. It comes back by
     * {@link #rejoin}; a new process takes the place of a dead one by {@link #admit}.
     *
     * @throws UnsupportedOperationException if the buffer has only normal mode, on GPUs of nodes of
     *     more than 8 ranks, or of several nodes that a network connects
     */
    void updateMask(int rank, boolean masked);

    /**
     * Which ranks are masked, by hand or by a time-out, in either mode: [R], 1 for masked; a copy.
     */
    int[] queryMask();

    /**
     * Collective, of masked ranks too: waits for all ranks, forgets whatever is in flight, and
     * unmasks all. The ranks then make their next calls together. Handles from before are those of
     * a dispatch with other masks, and low-latency ones are invalid.
     */
    void rejoin();

    /**
     * Takes new processes (or threads) into the places of ranks that are gone: collective among
     * those that stay, which call this, and the new ones, which call {@link Builder#join}. All
     * ranks meet in a new group, in which each that stays has the rank that it has here, and each
     * new one that of the rank whose place it takes. Then no rank is masked, and all make their
     * next calls together. What ranks that stay have goes on: the buffer and its memory, plans, and
     * graphs, which find the new ranks' memory where that of the dead was. Handles from before are
     * no longer valid.
     *
     * <pre>{@code
     * // where rank 3 was masked                        // in the new process
     * Communicator group = ...;                         Communicator group = ...; // as rank 3
     * buffer.admit(group);                              Buffer buffer = Buffer.builder(group)
     *                                                           .normal(limits).join();
     * }</pre>
     *
     * <p>Several ranks can be replaced at once, also none: then ranks that are all there change to
     * a new group, as after a failure of the network between them. Rank 0 is like any other.
     *
     * <p>If this throws, the buffer goes on in the group that it had, with the masks that it had,
     * and the call can be repeated in another new group. If it was a new rank that was lost, in the
     * last moment, some of the others may have taken it in: their next call then names whom it
     * lacks, and another new group brings all together. After this returned, nothing here uses the
     * old group.
     *
     * <p>See that the ranks that are replaced are dead: see {@link #updateMask}.
     *
     * @param group with as many ranks as this one's; stays open as long as this buffer
     * @throws IllegalArgumentException if it is of another size, or this rank is another there
     * @throws UnsupportedOperationException if ranks of this buffer cannot be masked, or its memory
     *     cannot be replaced: where a network connects the nodes, and on GPUs whose memory
     *     processes share by CUDA IPC; the others learn it by a {@code RankMismatchException}
     * @throws io.deepep.error.RankMismatchException on all ranks, if a new one gave other options
     * @throws io.deepep.error.DeepEpUnavailableException on all ranks, if one cannot reach the
     *     memory of another
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    void admit(Communicator group);

    /** The stream that asynchronous calls run on, the engine's if it gave one. */
    Stream communicationStream();

    /** Marks the present end of {@code stream}, for {@link CallOptions#after}. */
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
     * <p>A buffer that its rank leaves open is closed, with a warning, when an {@link
     * InProcessGroup} closes and the thread that opened the buffer has ended. On the host its
     * memory also goes when the buffer, its plans and its results can no longer be reached; a
     * process takes it along.
     */
    @Override
    void close();

    /** Collects the options of a {@link Buffer}. */
    final class Builder {
        private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

        private final Communicator communicator;
        private int ranksPerNode;
        private Device device = Device.host();
        private Stream communicationStream;
        private Network network = Network.auto();
        private NormalLimits normal;
        private LowLatencyLimits lowLatency;
        private long numNvlBytes;
        private long numRdmaBytes;
        private Config dispatchConfig;
        private Config combineConfig;
        private Duration timeout = DEFAULT_TIMEOUT;
        private boolean maskTimedOutRanks;
        private final List<BufferObserver> observers = new ArrayList<>();

        private Builder(Communicator communicator) {
            this.communicator = Objects.requireNonNull(communicator, "communicator");
        }

        /**
         * Ranks per node, which is an NVLink domain: 1 to {@value EpTopology#MAX_NVL_RANKS}, as far
         * as {@link GroupLimits} allows. By default those whose GPUs are in one NVLink domain, if
         * all GPUs are in domains that may reach beyond their host; else those of one host ({@link
         * Communicator#localSize}). Or a part of them, if they are more. All ranks give it, or
         * none.
         */
        public Builder ranksPerNode(int number) {
            if (number < 1) {
                throw new IllegalArgumentException(
                        "ranksPerNode=" + number + " must be at least 1");
            }
            this.ranksPerNode = number;
            return this;
        }

        /**
         * Where this rank's tensors lie; the host by default. It decides who moves the bytes: Java
         * on {@link Device#host}, CUDA kernels on {@link Device#cuda}.
         */
        public Builder device(Device where) {
            this.device = where;
            return this;
        }

        /**
         * Has calls run on the engine's own stream instead of one of the buffer's. Synchronous
         * calls {@linkplain CallOptions#on on} that stream are then in order with the engine's
         * kernels by themselves, with no event between them; nothing overlaps. The engine keeps the
         * stream until the buffer is closed, and gives no two ranks the same.
         *
         * @param stream of this rank's device
         */
        public Builder communicationStream(Stream stream) {
            this.communicationStream = Objects.requireNonNull(stream, "stream");
            return this;
        }

        /** How GPUs of different nodes reach each other; {@link Network#auto} by default. */
        public Builder network(Network which) {
            this.network = which;
            return this;
        }

        /** Allows normal mode up to these shapes. */
        public Builder normal(NormalLimits limits) {
            this.normal = limits;
            return this;
        }

        /** Allows low-latency mode with these shapes. */
        public Builder lowLatency(LowLatencyLimits limits) {
            this.lowLatency = limits;
            return this;
        }

        /**
         * Size of the NVL buffer; at least {@link Config#nvlBufferSizeHint} of the configuration
         * that {@linkplain Config#covering covers} both, which is the default.
         */
        public Builder numNvlBytes(long bytes) {
            this.numNvlBytes = bytes;
            return this;
        }

        /**
         * Size of the RDMA buffer; at least the sum of {@link Config#rdmaBufferSizeHint} of the
         * configuration that {@linkplain Config#covering covers} both and {@link
         * Buffer#lowLatencyRdmaSizeHint}, the default.
         */
        public Builder numRdmaBytes(long bytes) {
            this.numRdmaBytes = bytes;
            return this;
        }

        /** Configuration of normal dispatches; {@link Config#recommended} by default. */
        public Builder dispatchConfig(Config config) {
            this.dispatchConfig = config;
            return this;
        }

        /** Configuration of normal combines; {@link Config#recommended} by default. */
        public Builder combineConfig(Config config) {
            this.combineConfig = config;
            return this;
        }

        /** How long to wait for a peer before a call fails, up to 365 days; 30 s by default. */
        public Builder timeout(Duration limit) {
            this.timeout = limit;
            return this;
        }

        /**
         * Masks a rank that does not come in time: low-latency calls go on without it, calls of
         * normal mode fail and the next ones go on. Off by default. What that means, and how the
         * rank comes back: {@link Buffer#updateMask}, {@link Buffer#rejoin}.
         */
        public Builder maskTimedOutRanks(boolean on) {
            this.maskTimedOutRanks = on;
            return this;
        }

        /**
         * Adds an observer, which sees every call, as meters do. With observers, calls allocate a
         * little. JFR events need none.
         */
        public Builder observer(BufferObserver observer) {
            observers.add(Objects.requireNonNull(observer, "observer"));
            return this;
        }

        /**
         * Opens the buffer: collective. Ranks that gave different options learn it here, all of
         * them.
         *
         * @throws IllegalArgumentException if this rank's options do not fit together
         * @throws io.deepep.error.RankMismatchException if the ranks' options differ
         * @throws io.deepep.error.DeepEpUnavailableException if the device or the network cannot be
         *     used here
         */
        public Buffer open() {
            BufferProvider provider = BufferProvider.load();
            return provider.open(agreedOptions(provider, NodeSize.Call.OPEN));
        }

        /**
         * Opens the buffer in the place of a rank that is gone, beside ranks that keep theirs:
         * collective with their {@link Buffer#admit}, which says what is needed.
         *
         * @throws IllegalArgumentException if this rank's options do not fit together
         * @throws io.deepep.error.RankMismatchException if they differ from those of the others
         * @throws io.deepep.error.DeepEpUnavailableException if the device cannot be used here, or
         *     ranks cannot reach each other's memory
         */
        public Buffer join() {
            BufferProvider provider = BufferProvider.load();
            return provider.join(agreedOptions(provider, NodeSize.Call.JOIN));
        }

        private BufferOptions agreedOptions(BufferProvider provider, NodeSize.Call call) {
            BufferOptions alone = options(ranksPerNode != 0 ? ranksPerNode : 1);
            String domain = ranksPerNode != 0 ? "" : provider.nvlinkDomain(device);
            int nodeSize = NodeSize.agree(communicator, call, ranksPerNode, domain, timeout);
            return ranksPerNode != 0 ? alone : options(nodeSize);
        }

        /** Refuses what can be judged without the other ranks. */
        private BufferOptions options(int nodeSize) {
            int numRanks = communicator.size();
            Config recommended = Config.recommended(numRanks);
            return new BufferOptions(
                    communicator,
                    new EpTopology(communicator.rank(), numRanks, nodeSize),
                    device,
                    communicationStream,
                    network,
                    normal,
                    lowLatency,
                    numNvlBytes,
                    numRdmaBytes,
                    dispatchConfig != null ? dispatchConfig : recommended,
                    combineConfig != null ? combineConfig : recommended,
                    timeout,
                    maskTimedOutRanks,
                    observers);
        }
    }
}
