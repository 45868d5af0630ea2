package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;

/** One rank's {@code bench_empty.cu}: a launch of a low-latency kernel's size that does nothing. */
final class EmptyKernel implements AutoCloseable {
    /** Of a block of the low-latency kernels. */
    private static final int THREADS = 768;

    private final Arena arena = Arena.ofAuto();
    private final BenchModule module;
    private final KernelStruct.Params params = BenchStructs.EMPTY.allocate(arena);

    EmptyKernel(CudaContext context) {
        module = BenchModule.load(context, "empty");
    }

    void enqueue(CudaStream stream, int numBlocks) {
        LaunchConfig config = new LaunchConfig(arena, numBlocks, THREADS);
        module.function().launch(config, params.memory(), stream);
    }

    @Override
    public void close() {
        module.close();
    }
}
