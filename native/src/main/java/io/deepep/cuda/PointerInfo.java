package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Device;
import io.deepep.cuda.driver.CuCall;
import java.util.Optional;

/**
 * What the driver knows of an address, to check tensors that other libraries made.
 *
 * @param device the GPU the memory lies on, or the host for page-locked memory
 * @param base first address of the allocation
 * @param numBytes size of the allocation
 * @param plain whether {@code cuMemAlloc} made it, or the runtime's {@code cudaMalloc}: GPUs with
 *     {@link PeerAccess} reach it without being named, and CUDA IPC can share it
 */
public record PointerInfo(Device device, long base, long numBytes, boolean plain) {
    private static final int MEMORY_TYPE = 2;
    private static final int DEVICE_ORDINAL = 9;
    private static final int IS_LEGACY_IPC_CAPABLE = 10;
    private static final int RANGE_START = 11;
    private static final int RANGE_SIZE = 12;
    private static final int MEMORY_TYPE_HOST = 1;

    private static final CuCall GET_ATTRIBUTE =
            CuCall.of("cuPointerGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG).tolerating(1);

    /**
     * Empty if the driver has never heard of the address: ordinary host memory, or nothing at all.
     */
    public static Optional<PointerInfo> of(long address) {
        CudaDriver.ensureAvailable();
        long memoryType = ask(MEMORY_TYPE, address);
        if (memoryType == 0) {
            return Optional.empty();
        }
        boolean onHost = memoryType == MEMORY_TYPE_HOST;
        Device device = onHost ? Device.host() : Device.cuda((int) ask(DEVICE_ORDINAL, address));
        return Optional.of(
                new PointerInfo(
                        device,
                        ask(RANGE_START, address),
                        ask(RANGE_SIZE, address),
                        !onHost && ask(IS_LEGACY_IPC_CAPABLE, address) != 0));
    }

    /** 0 also for memory that is not the driver's: the call then fails with INVALID_VALUE. */
    private static long ask(int attribute, long address) {
        return GET_ATTRIBUTE.ask(attribute, address);
    }
}
