package io.deepep.lowlatency.cuda;

import io.deepep.EpTopology;
import io.deepep.LowLatencyPlan;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import java.util.List;

/**
 * Where a rank works, and how its kernels reach the others.
 *
 * @param context its GPU
 * @param stream the stream that all its operations are enqueued on
 * @param topology its place in the group
 * @param heaps of every rank, the address as this GPU sees it, 0 for those that only the network
 *     reaches; each holds a {@link LowLatencyLayout}, zeroed up to {@link
 *     LowLatencyLayout#headersEnd}
 * @param network null where every heap is mapped here
 * @param share what each rank can use of a GPU
 * @param goneRanks address of i32 [R], in host memory that the GPU sees: 1 + the rank because of
 *     which one will not come, or 0; or 0 where nobody knows
 * @param timeouts how long a kernel waits for a peer, unless a plan says it
 */
public record LowLatencyPlace(
        CudaContext context,
        CudaStream stream,
        EpTopology topology,
        List<Long> heaps,
        Network network,
        GpuShare share,
        long goneRanks,
        CallTimeouts timeouts) {
    /**
     * How ranks are reached whose heap is not mapped here: by kernels that were built with a
     * network policy. All of them compose in an outbox first, which is divided as a heap is and
     * which the network reads.
     */
    public sealed interface Network {
        /** Bytes from this rank's heap to its outbox. */
        long outbox();
    }

    /**
     * By queues that the kernels write themselves.
     *
     * @param queues what the policy knows of its queues: {@code Network.queues}
     */
    public record Queues(long queues, long outbox) implements Network {}

    /** By a library in whose memory heap and outbox lie, at the same place on all ranks. */
    public record Library(NetworkLibrary library, long outbox) implements Network {}

    /** Whether the kernels of one small node are used. */
    boolean isSmallNode() {
        return network == null && LowLatencyLayout.isSmallNode(topology);
    }

    /** This rank's heap. */
    long heap() {
        return heaps.get(topology.rank());
    }

    /** Tells kernels, in their group. */
    void fill(Params group) {
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            group.set("heap", rank, heaps.get(rank));
        }
        if (network != null) {
            group.set("outbox", network.outbox());
            fillNetwork(group.inner("network", NetworkStructs.NETWORK));
        }
        group.set("gone", goneRanks)
                .setInt("rank", topology.rank())
                .setInt("num_ranks", topology.numRanks());
    }

    /** To the network policy each rank is a node. */
    private void fillNetwork(Params struct) {
        struct.set("base", heap())
                .setInt("node", topology.rank())
                .setInt("num_nodes", topology.numRanks());
        switch (network) {
            case Queues queues -> struct.set("queues", queues.queues());
            case Library over -> {
                int first = over.library().peOf(0);
                struct.setInt("first_pe", first)
                        .setInt("pe_stride", over.library().peOf(1) - first);
            }
        }
    }

    /**
     * How many blocks a launch has.
     *
     * @throws IllegalArgumentException if the ranks of this GPU cannot all have that many at once:
     *     they wait for each other
     */
    int numBlocks(LowLatencyPlan plan, CudaFunction kernel, int sharedBytes) {
        int room = share.maxBlocks(kernel, LowLatencyStructs.THREADS, sharedBytes);
        int most = room / share.parts();
        int wanted = plan.numSms();
        if (most < 1) {
            throw new IllegalArgumentException(
                    "%s has room for %s blocks at once, too few for %s ranks; put fewer ranks on the GPU"
                            .formatted(context, room, share.parts()));
        }
        if (wanted > most) {
            throw new IllegalArgumentException(
                    ("numSms=%s for %s ranks on %s exceeds the %s blocks that fit there at once; ask for at"
                                    + " most %s, or put fewer ranks on the GPU")
                            .formatted(wanted, share.parts(), context, room, most));
        }
        if (wanted > 0) {
            return wanted;
        }
        return isSmallNode()
                ? LowLatencyPlan.defaultNumSms(plan.topkIdx().numElements(), most)
                : most;
    }
}
