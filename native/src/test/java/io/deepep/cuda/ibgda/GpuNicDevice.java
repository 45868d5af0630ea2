package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** The device code on a GPU. */
final class GpuNicDevice implements NicDevice {
    private static final int WARP = 32;

    private final Arena arena = Arena.ofShared();
    private final CudaContext context = CudaContext.shared(CudaDevice.of(0));
    private final GpuNicMemory memory = new GpuNicMemory(context);
    private final List<CudaStream> streams = new ArrayList<>();
    private final CudaModule module =
            CudaModule.loadResource(
                    context,
                    "nic_checks.fatbin",
                    GpuNicDevice.class.getResource("nic_checks.fatbin"));
    private final CudaFunction script;
    private final CudaFunction exchange;

    GpuNicDevice(int maxNodes) {
        NicCheckStructs.HEADER.requireSame(module);
        script = module.function("deepep_nic_script");
        exchange = module.function("deepep_nic_exchange");
        for (int i = 0; i < maxNodes; i++) {
            streams.add(CudaStream.create(context));
        }
    }

    @Override
    public MemorySegment allocate(long numBytes) {
        return memory.allocate(numBytes);
    }

    @Override
    public long place(long numBytes, NicGroup.TableWriter writer) {
        return memory.place(numBytes, writer);
    }

    @Override
    public void script(Params params) {
        CudaStream stream = streams.getFirst();
        script.launch(new LaunchConfig(arena, 1, WARP), params.memory(), stream);
        stream.synchronize();
    }

    @Override
    public void exchange(List<Params> byNode, int numChannels) {
        LaunchConfig launch = new LaunchConfig(arena, numChannels, WARP);
        for (int node = 0; node < byNode.size(); node++) {
            exchange.launch(launch, byNode.get(node).memory(), streams.get(node));
        }
        streams.forEach(CudaStream::synchronize);
    }

    @Override
    public int numLanes() {
        return WARP;
    }

    @Override
    public void close() {
        streams.forEach(CudaStream::close);
        module.close();
        memory.close();
        arena.close();
    }
}
