package io.deepep.cuda.ibgda;

import io.deepep.Network;
import io.deepep.cuda.rdma.Paths;
import java.time.Duration;
import java.util.List;

/**
 * How a rank's queue pairs are opened.
 *
 * @param ports that they use in turn, as {@code mlx5_0:1}, each with what the kernel says of the
 *     addresses of its table
 * @param path how packets travel
 * @param doorbells who rings
 * @param queuesInGpuMemory whether queues lie in memory of the GPU, where the card reaches it
 * @param relaxedOrdering whether writes may overtake each other on PCI
 * @param timeout for the card
 * @param meetingTimeout for peers that open theirs
 */
public record IbgdaOptions(
        List<Port> ports,
        Network.Path path,
        Doorbells doorbells,
        boolean queuesInGpuMemory,
        boolean relaxedOrdering,
        Duration timeout,
        Duration meetingTimeout) {
    /** Copies the list, and checks the path. */
    public IbgdaOptions {
        ports = List.copyOf(ports);
        Paths.check(path);
    }

    /**
     * A port.
     *
     * @param device as {@code mlx5_0}
     * @param number from 1
     * @param gidTypes what the kernel calls each address, by its index; nothing on InfiniBand
     */
    public record Port(String device, int number, List<String> gidTypes) {
        public Port {
            gidTypes = List.copyOf(gidTypes);
        }

        String gidType(int idx) {
            return idx < gidTypes.size() ? gidTypes.get(idx) : "";
        }
    }

    /** Who rings the doorbells. */
    public enum Doorbells {
        /** The GPU where the driver maps the registers for it, else a thread. */
        AUTO,
        /** The GPU. */
        GPU,
        /** A thread of this process, told by the GPU. */
        THREAD
    }

    /**
     * Queue pairs of a rank for one kind of kernels.
     *
     * @param peers rank at each place of the table that kernels are given; -1 where none is reached
     * @param ownPlace of this rank in the tables of its peers
     * @param base offset from which kernels count in the peers' memory, and in this rank's
     * @param queuesPerPeer queue pairs to each
     * @param numBlocks of each send queue, a power of two
     */
    public record Group(
            List<Integer> peers, int ownPlace, long base, int queuesPerPeer, int numBlocks) {
        /** A warp's 32 lanes submit three blocks each at most. */
        public static final int MIN_BLOCKS = 256;

        /** Indices in completions have 16 bits. */
        public static final int MAX_BLOCKS = 1 << 15;

        /** Checks the numbers. */
        public Group {
            peers = List.copyOf(peers);
            if (Integer.bitCount(numBlocks) != 1
                    || numBlocks < MIN_BLOCKS
                    || numBlocks > MAX_BLOCKS) {
                throw new IllegalArgumentException(
                        "qpDepth=%s is not a power of two in [%s, %s]"
                                .formatted(numBlocks, MIN_BLOCKS, MAX_BLOCKS));
            }
            if (queuesPerPeer < 1) {
                throw new IllegalArgumentException(
                        "queuesPerPeer=" + queuesPerPeer + " is not positive");
            }
        }

        /** Of a rank, to all its peers. */
        public int numQueues() {
            return (int) peers.stream().filter(peer -> peer >= 0).count() * queuesPerPeer;
        }

        /** Of queues, completions and the tables by which kernels find them. */
        public long memoryBytes() {
            return QueueSlab.numBytes(numQueues(), numBlocks) + IbgdaGroup.tablesBytes(this);
        }

        /**
         * Bytes that tell a peer where this rank's queue pairs are, if their numbers are in a row.
         */
        public int addressBytes() {
            return CardAddress.example(this).encode().length();
        }
    }

    /**
     * Memory that peers write to, and that this rank sends from.
     *
     * @param address on the GPU
     * @param numBytes with all outboxes
     * @param landings offset of {@link #LANDING_BYTES}, where atomics return to
     */
    public record NetworkMemory(long address, long numBytes, long landings) {
        /** Bytes for what atomics return: nobody reads it. */
        public static final long LANDING_BYTES = 128;
    }
}
