package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Tensor;

/** Where the memory of a rank's buffer lies; a range that it has not is empty. */
record OwnMemory(Device device, MemoryRange nvl, MemoryRange rdma) {
    /**
     * Refuses what lies in the buffer.
     *
     * @param readByPeers whether it may lie in the NVL buffer
     */
    void requireElsewhere(String name, Tensor tensor, boolean readByPeers) {
        if (!tensor.device().equals(device)) {
            return; // for others to refuse
        }
        if (rdma.overlaps(tensor)) {
            throw lying(name, tensor, "RDMA");
        }
        if (!readByPeers && nvl.overlaps(tensor)) {
            throw lying(name, tensor, "NVL");
        }
    }

    private static IllegalArgumentException lying(String name, Tensor tensor, String which) {
        return new IllegalArgumentException(
                ("%s is %s and lies in the buffer (%s), which ranks read and write during a call; give"
                                + " other memory, or a copy")
                        .formatted(name, tensor, which));
    }
}
