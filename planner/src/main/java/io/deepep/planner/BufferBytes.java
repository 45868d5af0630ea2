package io.deepep.planner;

import io.deepep.Buffer;
import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;

/**
 * The sizes of a rank's buffer for one mode, from the library's size hints.
 *
 * @param nvl bytes of an NVL buffer that no routing can overflow
 * @param rdma bytes of the RDMA buffer
 * @param maxRecvTokens rows that the busiest rank receives with the planned routing; 0 in
 *     low-latency mode, which has room for all
 * @param nvlForRouting bytes of the NVL buffer with that {@code maxRecvTokens}
 */
public record BufferBytes(long nvl, long rdma, int maxRecvTokens, long nvlForRouting) {
    /**
     * Checks that the library allows these shapes.
     *
     * @throws IllegalArgumentException if it would refuse them
     */
    public static void requireAllowed(Mode mode, Shape shape, int numRanks) {
        if (mode == Mode.LOW_LATENCY) {
            lowLatencyLimits(shape);
            return;
        }
        limits(shape, NormalLimits.WORST_CASE);
        if ((long) shape.numTokens() * numRanks > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "%s tokens of %s ranks are more rows than a buffer can have, %s; lower numTokens"
                            .formatted(shape.numTokens(), numRanks, Integer.MAX_VALUE));
        }
    }

    /** Normal mode's buffers. */
    static BufferBytes normal(Shape shape, EpTopology topology, int mostReceived) {
        int rows = Math.max(1, mostReceived);
        NormalLimits worst = limits(shape, NormalLimits.WORST_CASE);
        Config config = WireFormat.configFor(topology);
        return new BufferBytes(
                config.nvlBufferSizeHint(worst, topology),
                config.rdmaBufferSizeHint(worst, topology),
                rows,
                config.nvlBufferSizeHint(limits(shape, rows), topology));
    }

    private static NormalLimits limits(Shape shape, int maxRecvTokens) {
        return new NormalLimits(
                shape.numTokens(),
                shape.hidden(),
                shape.numTopk(),
                shape.numExperts(),
                maxRecvTokens);
    }

    /** Low-latency mode's buffers. */
    static BufferBytes lowLatency(Shape shape, EpTopology topology) {
        return new BufferBytes(
                0, Buffer.lowLatencyRdmaSizeHint(lowLatencyLimits(shape), topology), 0, 0);
    }

    static LowLatencyLimits lowLatencyLimits(Shape shape) {
        return new LowLatencyLimits(
                shape.numTokens(), shape.hidden(), shape.numTopk(), shape.numExperts());
    }
}
