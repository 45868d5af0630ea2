package io.deepep.host;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.spi.Meeting;
import io.deepep.spi.posix.JobMemory;
import io.deepep.spi.posix.SharedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;

/**
 * Opens the heaps of ranks that are processes of one host. Each rank makes {@link SharedMemory},
 * which holds both of its heaps and which the others open by process and descriptor:
 *
 * <pre>
 *  0        nvlBytes, rounded up to a page
 *  +--------+--------+
 *  |  NVL   |  RDMA  |
 *  +--------+--------+
 * </pre>
 *
 * <p>Doorbells do not reach another process, so its waiters look at their flags by themselves,
 * every half millisecond at the latest.
 */
final class ProcessHeaps {
    private static final long PAGE_BYTES = 4096;
    private static final String CURE =
            "run all ranks on one host, as one user, in one PID namespace (containers: one for all ranks), with room for their buffers";

    private final EpTopology topology;
    private final Meeting meeting;
    private final long nvlBytes;
    private final long rdmaBytes;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment[] nvl;
    private final MemorySegment[] rdma;
    private SharedMemory own;

    private ProcessHeaps(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            Duration timeout) {
        this.topology = topology;
        this.nvlBytes = nvlBytes;
        this.rdmaBytes = rdmaBytes;
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
        ProcessHeaps heaps = new ProcessHeaps(communicator, topology, nvlBytes, rdmaBytes, timeout);
        try {
            return heaps.meet();
        } catch (RuntimeException | Error failure) {
            heaps.arena.close();
            throw failure;
        }
    }

    private HostHeaps meet() {
        try {
            JobMemory job = JobMemory.agree(meeting, this::requireRoom);
            List<String> offers = meeting.together(() -> offer(job));
            meeting.together(() -> mapAll(job, offers));
        } finally {
            if (own != null) {
                own.close();
            }
        }
        HostDoorbell[] doorbells = new HostDoorbell[topology.numRanks()];
        for (int peer = 0; peer < doorbells.length; peer++) {
            doorbells[peer] = new HostDoorbell();
        }
        return HostHeaps.of(topology.rank(), nvl, rdma, doorbells, arena::close);
    }

    /** For all, before anybody takes memory. */
    private void requireRoom() {
        SharedMemory.requireRoom(
                Math.multiplyExact(numBytes(), (long) topology.numRanks()),
                "the buffers of " + topology.numRanks() + " ranks on this host");
    }

    private String offer(JobMemory job) {
        own = job.create(topology.rank(), numBytes());
        map(topology.rank(), own);
        return JobMemory.offer(own);
    }

    private String mapAll(JobMemory job, List<String> offers) {
        for (int peer = 0; peer < offers.size(); peer++) {
            if (peer != topology.rank()) {
                try (SharedMemory memory = job.open(peer, offers.get(peer), numBytes())) {
                    map(peer, memory);
                }
            }
        }
        return "";
    }

    private void map(int peer, SharedMemory memory) {
        boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
        nvl[peer] = sameNode ? memory.map(0, nvlBytes, arena) : null;
        rdma[peer] = memory.map(rdmaOffset(), rdmaBytes, arena);
    }

    private long rdmaOffset() {
        return Math.ceilDiv(nvlBytes, PAGE_BYTES) * PAGE_BYTES;
    }

    /** Not none, which could not be mapped. */
    private long numBytes() {
        return Math.max(1, Math.addExact(rdmaOffset(), rdmaBytes));
    }
}
