package io.deepep.buffer.memory;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.IpcHandle;
import io.deepep.host.HostHeaps;
import io.deepep.host.HostWait;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.NodeCommunicator;
import java.time.Duration;
import java.util.HexFormat;

/**
 * Device memory by CUDA IPC, which must not be freed while another process has it open. Ranks tell
 * each other by flags in host memory when they have let go; a rank waits for those of the others a
 * little, and else leaves its memory to the end of the process.
 *
 * <p>A process cannot open its own memory by CUDA IPC, so its threads use each other's addresses.
 */
final class CudaIpcHeaps extends CudaProcessHeaps {
    private static final Duration GRACE = Duration.ofSeconds(2);

    /** CUDA IPC shares whole blocks; smaller allocations would have one together. */
    private static final long BLOCK_BYTES = 2L << 20;

    private static final System.Logger LOG = System.getLogger(CudaIpcHeaps.class.getName());

    /** This rank among those that reach its memory. */
    private final EpTopology group;

    private final HostHeaps flags;

    /** Collective among all ranks. */
    CudaIpcHeaps(HeapRanks ranks, CudaContext context, long numBytes, CudaHeaps.Reach reach) {
        super(ranks, context, numBytes, reach, "CUDA IPC");
        Communicator communicator =
                reach == CudaHeaps.Reach.NODE
                        ? new NodeCommunicator(ranks.communicator(), ranks.topology())
                        : ranks.communicator();
        int size = communicator.size();
        group = new EpTopology(communicator.rank(), size, 1);
        flags =
                HostHeaps.open(
                        new HeapRanks(communicator, group, ranks.timeout()),
                        0,
                        (long) Long.BYTES * size);
    }

    @Override
    CudaMemory allocate() {
        return CudaMemory.allocate(context, Math.ceilDiv(numBytes, BLOCK_BYTES) * BLOCK_BYTES);
    }

    @Override
    String handle(CudaMemory memory) {
        String handle = HexFormat.of().formatHex(IpcHandle.of(memory).toBytes());
        return "%s %s %s".formatted(context.cudaDevice().ordinal(), memory.address(), handle);
    }

    @Override
    long accept(int peer, Offer offer) {
        String[] words = offer.handle().split(" ", 3);
        if (offer.isOfThisProcess()) {
            CudaDevice owner = CudaDevice.of(Integer.parseInt(words[0]));
            PeerAccess.enable(context, CudaContext.shared(owner));
            return Long.parseLong(words[1]);
        }
        // Of threads that share a GPU, one maps it for all.
        return keep(
                peer, IpcHandle.fromBytes(HexFormat.of().parseHex(words[2])).open(context), offer);
    }

    /** The driver chooses the address. */
    @Override
    boolean canReplace() {
        return false;
    }

    /** Also where it has no memory of its own. */
    @Override
    void letGo() {
        for (int peer = 0; peer < group.numRanks(); peer++) {
            flags.rdma().signal(peer, (long) Long.BYTES * group.rank(), 1);
        }
    }

    @Override
    void release(CudaMemory memory) {
        if (othersHaveLetGo()) {
            memory.close();
        } else {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "{0} bytes of rank {1} stay allocated until the process ends, because another rank"
                            + " has them open",
                    numBytes,
                    rank);
        }
    }

    @Override
    void end() {
        flags.close();
    }

    private boolean othersHaveLetGo() {
        HostWait wait = new HostWait(group.rank(), flags.doorbell(), GRACE.toNanos());
        boolean interrupted = Thread.interrupted(); // which ends no wait as short as this
        try {
            wait.start();
            for (int peer = 0; peer < group.numRanks(); peer++) {
                while (flags.rdma().flag((long) Long.BYTES * peer) == 0) {
                    if (wait.expired()) {
                        return false;
                    }
                    wait.pause();
                }
            }
            return true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
