package io.deepep.bench.run;

import io.deepep.Tensor;

/**
 * The same elements twice: for the oracle on the host, and where the rank's buffer works. One
 * tensor on the host backend.
 *
 * @param host for the oracle; nobody changes it
 * @param device for the buffer
 */
public record Mirror(Tensor host, Tensor device) {
    /** Host elements and their copy on the rank's device. */
    public static Mirror of(Tensor host, RankMemory memory) {
        return new Mirror(host, memory.upload(host));
    }

    /** The first {@code rows} rows of both. */
    public Mirror first(long rows) {
        return slice(0, rows);
    }

    /** Some rows of both. */
    public Mirror slice(long from, long rows) {
        return new Mirror(host.slice(0, from, rows), device.slice(0, from, rows));
    }
}
