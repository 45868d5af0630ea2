package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import java.lang.foreign.Arena;

/** One rank's {@code bench_empty.cu}: a launch of a low-latency kernel's size that does nothing. */
final class EmptyKernel implements AutoCloseable {
    /** Of a block of the low-latency kernels. */
    private static final int THREADS = 768;

    private final BenchModule module;
    private final KernelStruct.Params params;
    private final LaunchConfig launch;

    EmptyKernel(CudaContext context) {
        Arena arena = Arena.ofAuto();
        module = BenchModule.load(context, "empty");
        params = BenchStructs.EMPTY.allocate(arena);
        launch = new LaunchConfig(arena, 1, THREADS);
    }

    void enqueue(CudaStream stream, int numBlocks) {
        module.function().launch(launch.grid(numBlocks), params.memory(), stream);
    }

    @Override
    public void close() {
        module.close();
    }
}
