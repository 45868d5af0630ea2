package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.rdma.Endpoint;
import io.deepep.cuda.rdma.MemoryRegion;
import io.deepep.cuda.rdma.QueuePair;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.cuda.rdma.RdmaPort;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.util.List;

/**
 * A port that a rank uses, with the rank's network memory registered.
 *
 * @param device opened for this rank
 * @param port its state
 * @param endpoint what peers are told of it
 * @param region network memory
 */
record IbgdaNic(RdmaDevice device, RdmaPort port, Endpoint endpoint, MemoryRegion region)
        implements AutoCloseable {
    static IbgdaNic open(
            CudaContext context,
            IbgdaOptions.Port wanted,
            IbgdaOptions.NetworkMemory memory,
            IbgdaOptions options) {
        RdmaDevice device = RdmaDevice.open(wanted.device());
        try {
            List<String> missing = device.facts().missing();
            if (!missing.isEmpty()) {
                throw new DeepEpUnavailableException(
                        "kernels cannot drive %s (firmware %s): %s"
                                .formatted(
                                        device.name(),
                                        device.facts().firmware(),
                                        String.join("; ", missing)),
                        "update its firmware, or use Network.nvshmem");
            }
            if (memory.numBytes() > device.facts().maxRegionBytes()) {
                throw new DeepEpUnavailableException(
                        "%s bytes of network memory are more than the %s that %s can register under one key"
                                .formatted(
                                        memory.numBytes(),
                                        device.facts().maxRegionBytes(),
                                        device.name()),
                        "lower the limits of the buffer");
            }
            RdmaPort port = device.port(wanted.number());
            if (port.maxMessageBytes() < QueuePair.MAX_MESSAGE_BYTES) {
                throw new DeepEpUnavailableException(
                        "%s moves at most %s bytes by one entry; kernels need %s"
                                .formatted(
                                        port.name(),
                                        port.maxMessageBytes(),
                                        QueuePair.MAX_MESSAGE_BYTES),
                        "choose another NIC, or use Network.nvshmem");
            }
            Endpoint endpoint =
                    Endpoint.of(port, options.path().quality().gidIndex(), wanted::gidType);
            return new IbgdaNic(device, port, endpoint, register(context, device, memory, options));
        } catch (RuntimeException | Error e) {
            device.close();
            throw e;
        }
    }

    /** As it is now. */
    void requireActive() {
        device.port(port.number()).requireActive();
    }

    private static MemoryRegion register(
            CudaContext context,
            RdmaDevice device,
            IbgdaOptions.NetworkMemory memory,
            IbgdaOptions options) {
        boolean relaxed = options.relaxedOrdering();
        try {
            return GpuReach.register(
                    context,
                    memory.address(),
                    memory.numBytes(),
                    descriptor ->
                            device.registerDmaBuf(
                                    memory.address(), memory.numBytes(), descriptor, relaxed),
                    () -> device.register(memory.address(), memory.numBytes(), relaxed));
        } catch (NativeCallException e) {
            throw new DeepEpUnavailableException(
                    "%s cannot reach memory of %s: %s"
                            .formatted(device.name(), context.device(), e.getMessage()),
                    "load nvidia-peermem, or use the GPU's open kernel module with Linux 5.12 or later for dma-buf;"
                            + " if it says that memory is locked, raise ulimit -l",
                    e);
        }
    }

    @Override
    public void close() {
        region.close();
        device.close();
    }
}
