package io.deepep.host;

import io.deepep.EpTopology;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Meeting;
import io.deepep.spi.posix.JobMemory;
import io.deepep.spi.posix.SharedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The heaps of ranks that are processes of one host. Each rank makes {@link SharedMemory}, which
 * holds both of its heaps and which the others open by process and descriptor:
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
    private static final String CURE =
            "run all ranks on one host, as one user, in one PID namespace (containers: one for all"
                    + " ranks), with room for their buffers";

    private static final String FAILURE = "the processes cannot share host memory";
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
    private static final Path PID_NAMESPACE = Path.of("/proc/self/ns/pid");

    private final EpTopology topology;
    private final long nvlBytes;
    private final long rdmaBytes;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment[] nvl;
    private final MemorySegment[] rdma;
    private JobMemory job;

    /** Stays open, for ranks that come later. */
    private SharedMemory own;

    private ProcessHeaps(EpTopology topology, long nvlBytes, long rdmaBytes) {
        this.topology = topology;
        this.nvlBytes = nvlBytes;
        this.rdmaBytes = rdmaBytes;
        this.nvl = new MemorySegment[topology.numRanks()];
        this.rdma = new MemorySegment[topology.numRanks()];
    }

    /** Collective; fails on all ranks if it fails on one. */
    static HostHeaps open(HeapRanks ranks, long nvlBytes, long rdmaBytes) {
        EpTopology topology = ranks.topology();
        ProcessHeaps heaps = new ProcessHeaps(topology, nvlBytes, rdmaBytes);
        try {
            heaps.meet(ranks);
        } catch (RuntimeException | Error failure) {
            heaps.release();
            throw failure;
        }
        HostDoorbell[] doorbells = new HostDoorbell[topology.numRanks()];
        for (int peer = 0; peer < doorbells.length; peer++) {
            doorbells[peer] = new HostDoorbell();
        }
        return HostHeaps.of(
                topology.rank(), heaps.nvl, heaps.rdma, doorbells, heaps::meet, heaps::release);
    }

    /** New ranks make memory, and everybody maps what is new to it. */
    private void meet(HeapRanks ranks) {
        Meeting meeting = new Meeting(ranks.communicator(), ranks.timeout(), FAILURE, CURE);
        requireOnePlace(meeting.together(ProcessHeaps::place));
        int numNew = ranks.newRanks().cardinality();
        Runnable first = ranks.isNew() ? () -> requireRoom(numNew) : () -> {};
        job = JobMemory.agree(meeting, job, first);
        List<String> offers = meeting.together(() -> offer(ranks.isNew()));
        meeting.stepOnPeers(() -> mapAll(ranks, offers));
    }

    /** What processes have in common that can open each other's memory; empty if unknown. */
    private static String place() {
        try {
            return Files.readString(BOOT_ID) + Files.readSymbolicLink(PID_NAMESPACE);
        } catch (IOException unknown) {
            return "";
        }
    }

    /** Before memory is taken in vain. All ranks see the same. */
    private static void requireOnePlace(List<String> places) {
        String first = places.getFirst();
        for (int rank = 1; rank < places.size(); rank++) {
            String other = places.get(rank);
            if (!first.isEmpty() && !other.isEmpty() && !first.equals(other)) {
                throw new DeepEpUnavailableException(
                        "%s: rank %s is on another host than rank 0, or in another PID namespace"
                                .formatted(FAILURE, rank),
                        CURE);
            }
        }
    }

    private void release() {
        if (own != null) {
            own.close();
        }
        arena.close();
    }

    /** For all, before anybody takes memory. */
    private void requireRoom(int numNew) {
        SharedMemory.requireRoom(
                Math.multiplyExact(numBytes(), (long) numNew),
                "the buffers of " + numNew + " ranks on this host");
    }

    private String offer(boolean isNew) {
        if (isNew) {
            own = job.create(topology.rank(), numBytes());
            map(topology.rank(), own);
        }
        return JobMemory.offer(own);
    }

    private void mapAll(HeapRanks ranks, List<String> offers) {
        for (int peer = 0; peer < offers.size(); peer++) {
            if (peer != topology.rank() && (ranks.isNew() || ranks.newRanks().get(peer))) {
                try (SharedMemory memory = job.open(peer, offers.get(peer), numBytes())) {
                    map(peer, memory);
                }
            }
        }
    }

    /** Where a dead rank's memory was, if there was one. */
    private void map(int peer, SharedMemory memory) {
        if (rdma[peer] != null) {
            if (nvl[peer] != null) {
                memory.mapOver(0, nvl[peer]);
            }
            memory.mapOver(rdmaOffset(), rdma[peer]);
            return;
        }
        boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
        nvl[peer] = sameNode ? memory.map(0, nvlBytes, arena) : null;
        rdma[peer] = memory.map(rdmaOffset(), rdmaBytes, arena);
    }

    private long rdmaOffset() {
        return Math.ceilDiv(nvlBytes, SharedMemory.pageBytes()) * SharedMemory.pageBytes();
    }

    /** Not none, which could not be mapped. */
    private long numBytes() {
        return Math.max(1, Math.addExact(rdmaOffset(), rdmaBytes));
    }
}
