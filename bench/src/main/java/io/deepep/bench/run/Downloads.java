package io.deepep.bench.run;

import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.util.function.UnaryOperator;

/** Brings a rank's tensors to the host, on its thread; the copies are gone when it is closed. */
public final class Downloads implements UnaryOperator<Tensor>, AutoCloseable {
    private final RankMemory memory;
    private final Arena arena = Arena.ofConfined();

    /** From {@code memory}, on whose thread it is used. */
    public Downloads(RankMemory memory) {
        this.memory = memory;
    }

    @Override
    public Tensor apply(Tensor tensor) {
        return memory.download(tensor, arena);
    }

    @Override
    public void close() {
        arena.close();
    }
}
