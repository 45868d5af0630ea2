package io.deepep.bench.run;

import io.deepep.Device;
import io.deepep.Tensor;
import java.lang.foreign.Arena;

/** One rank's memory where its buffer works, and the ways in and out. Used on the rank's thread. */
public interface RankMemory extends AutoCloseable {
    /** A tensor of the rank's device with the elements of a contiguous host tensor. */
    Tensor upload(Tensor host);

    /** {@link #upload} into plain memory, as {@code cudaMalloc} gives it, that close frees. */
    Tensor uploadPlain(Tensor host);

    /**
     * A host tensor with the shape and elements of {@code tensor}, which nobody is writing.
     *
     * @param arena whose memory a copy takes, if one is needed
     */
    Tensor download(Tensor tensor, Arena arena);

    /** Copies the first rows of a matrix into another one of the same device and width. */
    void copyRows(Tensor from, Tensor to, long rows);

    /** Memory of the device in use, by whomever; 0 on the host. */
    long usedDeviceBytes();

    @Override
    void close();

    /** The memory of a rank on {@code device}. */
    static RankMemory of(Device device) {
        return device.isHost() ? new HostRankMemory() : new CudaRankMemory(device);
    }
}
