package io.deepep.cuda;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.spi.CudaProvider;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** Streams, events and memory of other libraries, as the API names them. */
public final class CudaHandles implements CudaProvider {
    private final Map<Integer, CudaContext> contexts = new ConcurrentHashMap<>();

    /** For the service loader. */
    public CudaHandles() {}

    @Override
    public Stream stream(Device device, long handle) {
        return CudaStream.wrap(context(device), handle);
    }

    @Override
    public Event event(Device device, long handle) {
        return CudaEvent.wrap(context(device), handle);
    }

    @Override
    public Optional<Memory> memoryAt(long address) {
        return PointerInfo.of(address)
                .filter(info -> !info.device().isHost())
                .map(info -> new Memory(info.device(), info.base(), info.numBytes()));
    }

    private CudaContext context(Device device) {
        return contexts.computeIfAbsent(
                device.index(), index -> CudaContext.shared(CudaDevice.of(index)));
    }
}
