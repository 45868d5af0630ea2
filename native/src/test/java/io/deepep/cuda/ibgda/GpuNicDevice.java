package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaMemory;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelStruct.Params;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.PinnedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The device code on a GPU; what the card reaches lies in mapped host memory. */
final class GpuNicDevice implements NicDevice {
    private static final int WARP = 32;

    private final Arena arena = Arena.ofShared();
    private final CudaContext context = CudaContext.shared(CudaDevice.of(0));
    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final List<CudaStream> streams = new ArrayList<>();
    private final CudaFunction script;
    private final CudaFunction exchange;

    GpuNicDevice(int maxNodes) {
        CudaModule module =
                keep(CudaModule.loadResource(context, GpuNicDevice.class, "nic_checks.fatbin"));
        NicCheckStructs.HEADER.requireSame(module);
        script = module.function("deepep_nic_script");
        exchange = module.function("deepep_nic_exchange");
        for (int i = 0; i < maxNodes; i++) {
            streams.add(keep(CudaStream.create(context)));
        }
    }

    private <T extends AutoCloseable> T keep(T resource) {
        resources.push(resource);
        return resource;
    }

    @Override
    public MemorySegment allocate(long numBytes) {
        PinnedMemory memory = keep(PinnedMemory.allocate(context, numBytes));
        if (memory.deviceAddress() != memory.segment().address()) {
            throw new AssertionError("host and GPU name mapped memory differently");
        }
        return memory.segment();
    }

    @Override
    public long place(long numBytes, NicGroup.TableWriter writer) {
        CudaMemory memory = keep(CudaMemory.allocate(context, numBytes));
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment image = confined.allocate(numBytes, 64);
            writer.write(image, memory.address());
            memory.copyFrom(0, image);
        }
        return memory.address();
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
        while (!resources.isEmpty()) {
            try {
                resources.pop().close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
        arena.close();
    }
}
