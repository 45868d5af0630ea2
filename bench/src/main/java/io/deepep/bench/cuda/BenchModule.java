package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.kernel.KernelHeader;

/** A kernel of the benchmarks, loaded onto one GPU. */
record BenchModule(CudaModule module, CudaFunction function) implements AutoCloseable {
    /** Loads {@code deepep_bench_NAME} of {@code bench_NAME.cu}. */
    static BenchModule load(CudaContext context, String name) {
        return load(context, name, BenchStructs.HEADER);
    }

    /** {@link #load(CudaContext, String)} of a kernel that shares other structs. */
    static BenchModule load(CudaContext context, String name, KernelHeader structs) {
        CudaModule module =
                CudaModule.loadResource(
                        context,
                        "bench_" + name + ".fatbin",
                        BenchModule.class.getResource("bench_" + name + ".fatbin"));
        structs.requireSame(module);
        return new BenchModule(module, module.function("deepep_bench_" + name));
    }

    @Override
    public void close() {
        module.close();
    }
}
