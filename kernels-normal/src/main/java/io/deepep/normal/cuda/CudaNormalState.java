package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.NormalDefaults;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalState;
import io.deepep.normal.cuda.kernels.CallKernels;
import io.deepep.normal.cuda.kernels.NormalModule;
import io.deepep.normal.cuda.kernels.NormalStructs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Function;

/** What all operations of one rank's normal mode share on a GPU. */
final class CudaNormalState extends NormalState implements AutoCloseable {
    /** Of what is read or written at once: 8 bytes, or the words of a node's masked ranks. */
    private static final int SLOT_BYTES = 16;

    final CudaContext context;
    final CudaStream stream;
    final NormalModule kernels;

    /** What the kernels of this group were built with. */
    final NormalStructs structs;

    private final long goneRanks;
    final boolean peersReachPlainMemory;
    final DevicePool memory;
    final PinnedSlots slots;

    /** What lies between nodes; null on one node. */
    final InternodeState internode;

    /**
     * i32 [maxTokens][R] (several nodes: {@code NodeRows} [nodes][maxTokens]) and u32 [maxExperts]:
     * scratch of a dispatch, which operations in stream order can share.
     */
    final DevicePool.Block tokenOrder;

    final DevicePool.Block expertHist;

    private final CallKernels unmaskedCalls;
    private final List<Long> heaps;
    private final GpuShare share;
    private final boolean masksTimedOut;
    private final PinnedSlots.Slot slot;
    private final DevicePool.Block localState;

    CudaNormalState(
            CudaNormalKernels.RankSetup setup,
            NormalLimits limits,
            Config dispatchConfig,
            Config combineConfig,
            NormalDefaults defaults) {
        super(
                limits,
                new NormalConfigs(
                        setup.topology(),
                        fit(dispatchConfig, defaults.dispatch(), setup),
                        fit(combineConfig, defaults.combine(), setup)),
                setup.timeouts(),
                setup.context().device());
        this.context = setup.context();
        this.stream = setup.stream();
        this.share = setup.share();
        this.masksTimedOut = setup.masksTimedOut();
        this.goneRanks = setup.goneRanks();
        this.peersReachPlainMemory = setup.peersReachPlainMemory();
        this.heaps = setup.heaps();
        this.kernels = NormalModule.of(context);
        this.structs = NormalStructs.of(topology.numNvlRanks());
        this.slots = PinnedSlots.ofProcess(context);
        this.memory = new DevicePool(stream, reservedBytes());
        try {
            this.slot = slots.take(this, SLOT_BYTES, null);
            this.tokenOrder = memory.allocate(routingBytes());
            this.expertHist = memory.allocateZeroed(4L * limits.maxExperts());
            this.localState = memory.allocateZeroed(structs.localState.numBytes());
            this.internode =
                    topology.isInternode()
                            ? new InternodeState(
                                    this,
                                    setup.rdmaHeaps(),
                                    dispatchConfig.covering(combineConfig),
                                    masksTimedOut)
                            : null;
        } catch (RuntimeException | Error failure) {
            memory.close();
            throw failure;
        }
        this.unmaskedCalls = internode == null ? kernels.oneNode(structs) : internode.kernels;
    }

    /** Bytes of the rows of one plan's tokens. */
    private long routingBytes() {
        return topology.isInternode()
                ? InternodeRouting.bytes(topology, limits.maxTokens())
                : 4L * limits.maxTokens() * topology.numRanks();
    }

    /**
     * Room for the scratch below, and for routing and received indices of two plans. Rows that are
     * copied out come on top, when a plan is prepared that wants them.
     */
    private long reservedBytes() {
        boolean internode = topology.isInternode();
        long received = (8L + 4L) * nvlLayout.capacity() * limits.maxTopk();
        return (internode ? 5 : 3) * routingBytes()
                + (internode ? InternodeState.reservedBytes(topology) : 0)
                + 2 * received
                + 4L * limits.maxExperts()
                + structs.localState.numBytes();
    }

    /**
     * Ranks on one GPU share its multiprocessors: the default number shrinks to what fits, another
     * one is the user's choice.
     */
    private static Config fit(Config config, Config byDefault, CudaNormalKernels.RankSetup setup) {
        int room = setup.share().smsPerPart();
        int fewest = NormalConfigs.fewestSms(setup.topology());
        return config.equals(byDefault) && config.numSms() > room && room >= fewest
                ? config.withNumSms(room)
                : config;
    }

    /** Whether nodes have more ranks than kernels have lanes for. */
    boolean isLargeNode() {
        return structs == NormalStructs.WIDE;
    }

    /** Dynamic shared memory that a block of the group's calls can have. */
    int sharedBytes() {
        return CallKernels.sharedBytes(context, structs);
    }

    /** The kernels of the next launch of a call. */
    CallKernels calls() {
        return looksAtMasks() ? internode.maskedKernels : unmaskedCalls;
    }

    /** Demands that all blocks of a call fit, whichever kernels it is of. */
    void requireResident(
            Function<CallKernels, CudaFunction> call,
            int numBlocks,
            int numThreads,
            int sharedBytes) {
        if (canMask() && internode != null) {
            requireResident(
                    call.apply(internode.maskedKernels), numBlocks, numThreads, sharedBytes);
        }
        requireResident(call.apply(unmaskedCalls), numBlocks, numThreads, sharedBytes);
    }

    @Override
    public long nvlAddress() {
        return heaps.get(topology.rank());
    }

    @Override
    protected Tensor nvlView(
            long offset, long numBytes, DType dtype, long[] shape, long[] strides) {
        return Tensor.onDevice(
                context.device(), nvlAddress() + offset, numBytes, dtype, shape, strides);
    }

    /** Fills the group at the beginning of {@code params}. */
    void setGroup(Params params, NormalStatus status) {
        setGroup(new Params(structs.group, params.memory()), true, status);
    }

    /** The same where kernels look at no peers, which are those of all groups. */
    void setOwnGroup(Params params, NormalStatus status) {
        setGroup(new Params(NormalStructs.NARROW.group, params.memory()), false, status);
    }

    private void setGroup(Params p, boolean peers, NormalStatus status) {
        int firstRank = topology.rankOf(topology.rdmaRank(), 0);
        if (peers) {
            setLayout(p, nvlLayout, heaps.subList(firstRank, firstRank + topology.numNvlRanks()));
        }
        status.fill(p);
        p.set("state", localState.address())
                .set("gone", goneRanks)
                .setInt("rank", topology.nvlRank())
                .setInt("first_rank", firstRank);
    }

    /** The part of the group that says where things lie; the heaps of one node. */
    static void setLayout(Params group, NormalNvlLayout layout, List<Long> heaps) {
        for (int rank = 0; rank < heaps.size(); rank++) {
            group.set("heap", rank, heaps.get(rank));
        }
        group.set("header_offset", layout.headers().offset())
                .set("header_parity_stride", layout.headers().stride0())
                .set("header_rank_stride", layout.headers().stride1())
                .set("meta_flag_offset", layout.metaFlags().offset())
                .set("done_flag_offset", layout.doneFlags().offset())
                .setInt("num_ranks", heaps.size());
    }

    /**
     * Blocks of one launch wait for each other and for those of the other ranks on this GPU: all of
     * them must fit at once.
     */
    void requireResident(CudaFunction kernel, int numBlocks, int numThreads, int sharedBytes) {
        int room = share.maxBlocks(kernel, numThreads, sharedBytes);
        if ((long) numBlocks * share.parts() > room) {
            throw new IllegalArgumentException(
                    ("numSms=%s for %s ranks on %s exceeds the %s blocks that fit there at once; lower Config.numSms to %s or less,"
                                    + " or put fewer ranks on the GPU")
                            .formatted(
                                    numBlocks,
                                    share.parts(),
                                    context,
                                    room,
                                    Math.max(
                                            NormalConfigs.fewestSms(topology),
                                            share.smsPerPart())));
        }
    }

    /** Reads 8 bytes of device memory after all work of the stream. */
    long readLong(long address) {
        stream.copy(slot.deviceAddress(), address, Long.BYTES);
        stream.synchronize();
        return slot.page().segment().get(ValueLayout.JAVA_LONG, slot.offset());
    }

    void startAfter(int epoch) {
        write(wordOfState("epoch"), epoch);
        write(wordOfState("told_since"), 0);
    }

    /** Over a network, most ranks have queues to their peers alone, and none to stand-ins. */
    boolean canMask() {
        return internode == null || internode.canMask();
    }

    /**
     * Whether the next launch has to look at masks. Across nodes these are kernels of their own;
     * graphs are given them, because ranks may be masked when they are replayed.
     */
    boolean looksAtMasks() {
        return internode != null && internode.canMask() && (masksTimedOut || mayMask());
    }

    /** Whether ranks are masked in the next launch, or may be when it is replayed. */
    private boolean mayMask() {
        return stream.isCapturing() || !masks.isEmpty();
    }

    /** Whether other ranks may forward what would be for this one, and pull its rows for that. */
    boolean mayHaveStandIns() {
        return looksAtMasks() && mayMask();
    }

    void updateMask(int rank, boolean masked) {
        if (!canMask()) {
            throw new UnsupportedOperationException(
                    "normal mode on GPUs cannot mask ranks if a network connects the nodes, of which this group has "
                            + topology.numRdmaRanks()
                            + "; open a buffer in a group of the remaining ranks"
                            + internode.cure());
        }
        masks.update(rank, masked);
        write(wordOfState("masked"), masks.word());
        int first = topology.rankOf(topology.rdmaRank(), 0);
        write(wordOfState("masked_ranks"), masks.words(first, topology.numNvlRanks()));
        if (internode != null) {
            internode.rails.write(masks);
        }
    }

    long wordOfState(String field) {
        return localState.address() + structs.localState.offset(field);
    }

    /** Writes words of device memory after all work of the stream. */
    private void write(long address, int... words) {
        stream.synchronize();
        MemorySegment to = slot.page().segment();
        MemorySegment.copy(words, 0, to, ValueLayout.JAVA_INT, slot.offset(), words.length);
        stream.copy(address, slot.deviceAddress(), (long) Integer.BYTES * words.length);
        stream.synchronize();
    }

    @Override
    public void close() {
        memory.close();
    }
}
