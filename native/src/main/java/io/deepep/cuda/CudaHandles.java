package io.deepep.cuda;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.spi.CudaProvider;
import java.util.Optional;

/** Streams, events and memory of other libraries, as the API names them. */
public final class CudaHandles implements CudaProvider {
    /** For the service loader. */
    public CudaHandles() {}

    @Override
    public Stream stream(Device device, long handle) {
        return CudaStream.wrap(CudaContext.shared(device.index()), handle);
    }

    @Override
    public Event event(Device device, long handle) {
        return CudaEvent.wrap(CudaContext.shared(device.index()), handle);
    }

    @Override
    public Optional<Memory> memoryAt(long address) {
        return PointerInfo.of(address)
                .filter(info -> !info.device().isHost())
                .map(info -> new Memory(info.device(), info.base(), info.numBytes()));
    }
}
