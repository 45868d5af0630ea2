package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.buffer.memory.BufferSizes;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.spi.NodeSize;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Which group the ranks of a buffer are in, whom they leave out, and how all get in step again.
 *
 * @param buffer tells the ranks' buffer from any other that they have
 */
record Membership(BufferOptions options, BufferSizes sizes, String buffer, Resources resources) {
    /**
     * Calls by which a rank that died may have been ahead of those that stay, and more: flags that
     * it left in their memory are of the past then.
     */
    private static final int LEAP = 1 << 10;

    /** Said by ranks that are to clean. */
    private static final byte[] CLEAN = "clean".getBytes(StandardCharsets.US_ASCII);

    /** The group that the rank is in. */
    Communicator group() {
        return resources.departures().communicator();
    }

    /** Which ranks are masked in either mode: [R], 1 for masked. */
    int[] queryMask() {
        int[] mask = new int[options.topology().numRanks()];
        if (resources.normal() != null) {
            addMask(mask, resources.normal().queryMask());
        }
        if (resources.lowLatency() != null) {
            resources.requireNoCapture(); // what kernels have masked is known when they are done
            addMask(mask, resources.lowLatency().queryMask());
        }
        return mask;
    }

    private static void addMask(int[] mask, int[] ofMode) {
        for (int rank = 0; rank < mask.length; rank++) {
            mask[rank] |= ofMode[rank];
        }
    }

    /** Meets all ranks, and makes sure that they are to clean, before any of them does. */
    void meetToClean() {
        List<byte[]> messages = group().allGather(CLEAN, options.meetingTimeout());
        for (int rank = 0; rank < messages.size(); rank++) {
            if (!Arrays.equals(messages.get(rank), CLEAN)) {
                throw RankMismatchException.ofCall("clean", rank);
            }
        }
    }

    /** Gets in step with all ranks of the group: collective. */
    void rejoin() {
        becomeQuiet();
        resources.mendNetwork();
        getInStep("rejoin", group(), 0);
    }

    /**
     * Gets in step with all ranks of another group, some of which may be new: collective.
     *
     * @param check refuses what this rank cannot do, which the others then learn
     */
    void admit(Communicator group, Runnable check) {
        meetIn(group);
        try {
            check.run();
            requireSamePlace(group);
            requireMaskable();
            resources.requireReplaceable();
            becomeQuiet();
        } catch (RuntimeException unusable) {
            Handshake.refuse(group, options, unusable);
            throw unusable;
        }
        Agreement agreement = Handshake.admit(group, options, sizes, buffer);
        resources.admit(agreement.ranks());
        getInStep("admit", group, LEAP);
    }

    /** The same for one of the new ranks, whose memory is there. */
    void join() {
        getInStep("join", group(), LEAP);
    }

    private void meetIn(Communicator group) {
        int nodeSize = options.topology().numNvlRanks();
        try {
            NodeSize.agree(group, NodeSize.Call.JOIN, nodeSize, "", options.meetingTimeout());
        } catch (DeepEpTimeoutException late) {
            try {
                requireSamePlace(group);
            } catch (IllegalArgumentException wrongGroup) {
                wrongGroup.addSuppressed(late); // whom nobody has to bring
                throw wrongGroup;
            }
            throw late;
        }
    }

    private void requireSamePlace(Communicator group) {
        int rank = options.topology().rank();
        int numRanks = options.topology().numRanks();
        if (group.rank() != rank
                || group.size() != numRanks
                || group.isInProcess() != group().isInProcess()) {
            throw new IllegalArgumentException(
                    ("group is %s, but this is %s; a new group must have the same size, give this rank the same"
                                    + " number, and consist of threads or of processes as before")
                            .formatted(group, group()));
        }
    }

    private void requireMaskable() {
        if (resources.normal() != null && !resources.normal().canMask()) {
            throw new UnsupportedOperationException(
                    "ranks of this buffer cannot be replaced, because they cannot be masked (see"
                            + " Buffer.updateMask); close it, and open one in the new group");
        }
    }

    private void becomeQuiet() {
        resources.becomeIdle();
        if (resources.lowLatency() != null) {
            resources.lowLatency().quiet();
        }
    }

    /** The masks and the group change last, once nothing can fail any more. */
    private void getInStep(String operation, Communicator group, int leap) {
        NormalKernels normal = resources.normal();
        LowLatencyKernels lowLatency = resources.lowLatency();
        int epoch = normal == null ? 0 : normal.epoch();
        int latest = epoch;
        byte[] mine = ByteBuffer.allocate(Integer.BYTES).putInt(epoch).array();
        List<byte[]> epochs = group.allGather(mine, options.meetingTimeout());
        for (int rank = 0; rank < epochs.size(); rank++) {
            if (epochs.get(rank).length != Integer.BYTES) {
                throw RankMismatchException.ofCall(operation, rank);
            }
            int theirs = ByteBuffer.wrap(epochs.get(rank)).getInt();
            latest = theirs - latest > 0 ? theirs : latest;
        }
        // All know the epoch before anybody takes it: whoever fails until here leaves the others in
        // the calls that they were in.
        group.barrier(options.meetingTimeout());
        if (normal != null) {
            normal.takeSuspects();
            normal.startAfter(latest + leap);
        }
        if (lowLatency != null) {
            lowLatency.reset();
        }
        group.barrier(options.meetingTimeout());
        resources.moveTo(group);
        int[] masked = queryMask();
        for (int rank = 0; rank < masked.length; rank++) {
            if (masked[rank] != 0) {
                resources.updateMask(rank, false);
            }
        }
    }
}
