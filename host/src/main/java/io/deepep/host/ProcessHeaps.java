package io.deepep.host;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.spi.Meeting;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * Opens the heaps of ranks that are processes of one host: each shows the others a {@link
 * SharedFile}. Doorbells do not reach another process, so its waiters look at their flags by
 * themselves, every half millisecond at the latest.
 */
final class ProcessHeaps {
    private static final String CURE =
            "run all ranks on one host, as one user, with room in /dev/shm (containers: one for all ranks, --shm-size)";
    private final EpTopology topology;
    private final Meeting meeting;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment[] nvl;
    private final MemorySegment[] rdma;
    private SharedFile own;

    private ProcessHeaps(Communicator communicator, EpTopology topology, Duration timeout) {
        this.topology = topology;
        this.meeting =
                new Meeting(communicator, timeout, "the processes cannot share host memory", CURE);
        this.nvl = new MemorySegment[topology.numRanks()];
        this.rdma = new MemorySegment[topology.numRanks()];
    }

    /** Collective; fails on all ranks if it fails on one. */
    static HostHeaps open(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            Duration timeout) {
        ProcessHeaps heaps = new ProcessHeaps(communicator, topology, timeout);
        try {
            return heaps.meet(nvlBytes, rdmaBytes);
        } catch (RuntimeException | Error failure) {
            heaps.arena.close();
            throw failure;
        }
    }

    private HostHeaps meet(long nvlBytes, long rdmaBytes) {
        try {
            List<String> paths = meeting.together(() -> create(nvlBytes, rdmaBytes));
            meeting.together(() -> mapAll(paths));
        } finally {
            forgetName();
        }
        HostDoorbell[] doorbells = new HostDoorbell[topology.numRanks()];
        for (int peer = 0; peer < doorbells.length; peer++) {
            doorbells[peer] = new HostDoorbell();
        }
        int rank = topology.rank();
        return new HostHeaps(
                new HostHeap(rank, nvl, doorbells),
                new HostHeap(rank, rdma, doorbells),
                doorbells[rank],
                arena::close);
    }

    private String create(long nvlBytes, long rdmaBytes) {
        own = SharedFile.create(nvlBytes, rdmaBytes);
        own.requireRoomFor(topology.numRanks());
        map(topology.rank(), own);
        return own.path().toString();
    }

    private String mapAll(List<String> paths) {
        for (int peer = 0; peer < paths.size(); peer++) {
            if (peer != topology.rank()) {
                Path path = Path.of(paths.get(peer));
                map(peer, new SharedFile(path, own.nvlBytes(), own.rdmaBytes()));
            }
        }
        return "";
    }

    private void map(int peer, SharedFile file) {
        boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
        nvl[peer] = sameNode ? file.mapNvl(arena) : null;
        rdma[peer] = file.mapRdma(arena);
    }

    private void forgetName() {
        if (own != null) {
            own.unlink();
        }
    }
}
