package io.deepep.bench.cuda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.LaunchConfig;
import java.lang.foreign.Arena;

/** The calls of the driver that operations are made of, on the first GPU, for benchmarks. */
public final class CudaCalls implements AutoCloseable {
    private static final int THREADS = 32;

    private final CudaStream stream;
    private final CudaEvent event;
    private final BenchModule module;
    private final KernelStruct.Params params;
    private final LaunchConfig config;

    private CudaCalls() {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        stream = CudaStream.create(context);
        event = CudaEvent.create(context);
        module = BenchModule.load(context, "gate");
        Arena arena = Arena.ofAuto();
        // A gate of no ranks that does not pause: it ends as soon as it runs.
        params = BenchStructs.GATE.allocate(arena);
        config = new LaunchConfig(arena, 1, THREADS);
        stream.record(event);
    }

    /** Opens the first GPU. */
    public static CudaCalls open() {
        return new CudaCalls();
    }

    /** Enqueues a kernel that does nothing. */
    public void launch() {
        module.function().launch(config, params.memory(), stream);
    }

    /** Marks the end of the stream. */
    public void record() {
        stream.record(event);
    }

    /** Asks whether the mark has been passed. */
    public boolean query() {
        return event.isDone();
    }

    /** Waits for the stream. */
    public void synchronize() {
        stream.synchronize();
    }

    @Override
    public void close() {
        stream.synchronize();
        module.close();
        event.close();
        stream.close();
    }
}
