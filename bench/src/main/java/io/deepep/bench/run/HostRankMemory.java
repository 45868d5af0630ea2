package io.deepep.bench.run;

import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.lang.foreign.Arena;

/** The host backend works on host tensors as they are. */
final class HostRankMemory implements RankMemory {
    @Override
    public Tensor upload(Tensor host) {
        return host;
    }

    @Override
    public Tensor uploadPlain(Tensor host) {
        return upload(host);
    }

    @Override
    public Tensor download(Tensor tensor, Arena arena) {
        return tensor;
    }

    @Override
    public void copyRows(Tensor from, Tensor to, long rows) {
        HostTensors.copy(from.slice(0, 0, rows), to.slice(0, 0, rows));
    }

    @Override
    public long usedDeviceBytes() {
        return 0;
    }

    @Override
    public void close() {
        // Host tensors belong to the garbage collector.
    }
}
