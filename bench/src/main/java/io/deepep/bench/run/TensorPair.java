package io.deepep.bench.run;

import io.deepep.Tensor;

/**
 * The same elements twice: for the oracle on the host, and where the rank's buffer works. One
 * tensor on the host backend.
 *
 * @param host for the oracle; nobody changes it
 * @param device for the buffer
 */
public record TensorPair(Tensor host, Tensor device) {
    /** Host elements and their copy on the rank's device. */
    public static TensorPair of(Tensor host, RankMemory memory) {
        return new TensorPair(host, memory.upload(host));
    }

    /** Some rows of both. */
    public TensorPair slice(long from, long rows) {
        return new TensorPair(host.slice(0, from, rows), device.slice(0, from, rows));
    }
}
