package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.buffer.memory.CudaHeaps;
import java.util.BitSet;

/**
 * What ranks agreed on before they share memory.
 *
 * @param group in which they did
 * @param buffer tells the ranks' buffer from any other that they have
 * @param newRanks those whose memory is new to the others: all when a buffer opens
 */
record Agreement(Communicator group, String buffer, BitSet newRanks) {
    /** Whether no rank has the buffer yet. */
    boolean isFirst() {
        return newRanks.cardinality() == group.size();
    }

    /** The ranks as those that share GPU memory. */
    CudaHeaps.Ranks ranks(BufferOptions options) {
        EpTopology topology = options.topology();
        return new CudaHeaps.Ranks(group, topology, newRanks, options.meetingTimeout());
    }
}
