package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.Device;
import io.deepep.cuda.driver.CuCall;
import io.deepep.error.NativeCallException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HexFormat;
import java.util.function.BooleanSupplier;

/**
 * What is fixed about one GPU.
 *
 * @param ordinal the driver's number for it in this process
 * @param name marketing name
 * @param uuid 32 hexadecimal digits, the same in every process
 * @param pciBusId domain:bus:device.function
 * @param computeMajor compute capability, major
 * @param computeMinor compute capability, minor
 * @param numSms streaming multiprocessors, as far as this process may use them
 * @param memoryBytes device memory in all
 * @param l2Bytes level 2 cache
 * @param maxSharedBytesPerBlock shared memory a block can have when its kernel asks for more than
 *     the default
 * @param supportsPosixFd whether memory can be exported as a file descriptor
 */
public record CudaDevice(
        int ordinal,
        String name,
        String uuid,
        String pciBusId,
        int computeMajor,
        int computeMinor,
        int numSms,
        long memoryBytes,
        int l2Bytes,
        int maxSharedBytesPerBlock,
        boolean supportsPosixFd) {
    private static final int ATTRIBUTE_NUM_SMS = 16;
    private static final int ATTRIBUTE_L2_BYTES = 38;
    private static final int ATTRIBUTE_COMPUTE_MAJOR = 75;
    private static final int ATTRIBUTE_COMPUTE_MINOR = 76;
    private static final int ATTRIBUTE_MAX_SHARED_BYTES_OPTIN = 97;
    private static final int ATTRIBUTE_POSIX_FD = 103;
    private static final int ATTRIBUTE_DMA_BUF = 124;
    private static final int ATTRIBUTE_MPS = 133;
    private static final String MPS_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

    /** The percentage of a GPU that is all of it. */
    public static final int WHOLE = 100;

    private static final int NAME_BYTES = 256;

    private static final CuCall GET_NAME =
            CuCall.of("cuDeviceGetName", ADDRESS, JAVA_INT, JAVA_INT);
    private static final CuCall GET_ATTRIBUTE =
            CuCall.of("cuDeviceGetAttribute", ADDRESS, JAVA_INT, JAVA_INT);
    private static final CuCall TOTAL_MEM = CuCall.of("cuDeviceTotalMem_v2", ADDRESS, JAVA_INT);
    private static final CuCall GET_PCI_BUS_ID =
            CuCall.of("cuDeviceGetPCIBusId", ADDRESS, JAVA_INT, JAVA_INT);
    private static final CuCall GET_UUID = CuCall.of("cuDeviceGetUuid_v2", ADDRESS, JAVA_INT);

    /**
     * The GPU with the given number.
     *
     * @throws IllegalArgumentException if there is none
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static CudaDevice of(int ordinal) {
        int numDevices = CudaDriver.numDevices();
        if (ordinal < 0 || ordinal >= numDevices) {
            throw new IllegalArgumentException(
                    "device ordinal=%s is not in [0, %s), the GPUs visible here"
                            .formatted(ordinal, numDevices));
        }
        try (Arena arena = Arena.ofConfined()) {
            // A device handle is its ordinal, in every driver since the first (cuDeviceGet returns
            // it unchanged).
            MemorySegment text = arena.allocate(NAME_BYTES);
            GET_NAME.invoke(text, NAME_BYTES, ordinal);
            String name = text.getString(0);
            GET_PCI_BUS_ID.invoke(text, NAME_BYTES, ordinal);
            String pciBusId = text.getString(0);
            MemorySegment uuid = arena.allocate(16);
            GET_UUID.invoke(uuid, ordinal);
            return new CudaDevice(
                    ordinal,
                    name,
                    HexFormat.of().formatHex(uuid.toArray(JAVA_BYTE)),
                    pciBusId,
                    attribute(ordinal, ATTRIBUTE_COMPUTE_MAJOR),
                    attribute(ordinal, ATTRIBUTE_COMPUTE_MINOR),
                    attribute(ordinal, ATTRIBUTE_NUM_SMS),
                    TOTAL_MEM.ask(ordinal),
                    attribute(ordinal, ATTRIBUTE_L2_BYTES),
                    attribute(ordinal, ATTRIBUTE_MAX_SHARED_BYTES_OPTIN),
                    attribute(ordinal, ATTRIBUTE_POSIX_FD) != 0);
        }
    }

    /**
     * The percentage of its multiprocessors that NVIDIA's MPS leaves to this process, which has
     * {@link #numSms} for itself then; 100 without MPS, or if it sets no limit.
     */
    public int mpsPercentage() {
        return mpsPercentage(System.getenv(MPS_SHARE), () -> attribute(ATTRIBUTE_MPS) != 0);
    }

    static int mpsPercentage(String share, BooleanSupplier isUnderMps) {
        if (share == null) {
            return WHOLE;
        }
        try {
            int percent = (int) Math.ceil(Double.parseDouble(share.strip()));
            return percent > 0 && percent < WHOLE && isUnderMps.getAsBoolean() ? percent : WHOLE;
        } catch (NumberFormatException | NativeCallException unknown) { // the latter by old drivers
            return WHOLE;
        }
    }

    /** Whether network cards can reach its memory without the module nvidia-peermem. */
    public boolean supportsDmaBuf() {
        return attribute(ATTRIBUTE_DMA_BUF) != 0;
    }

    /** This GPU as the API names it. */
    public Device device() {
        return Device.cuda(ordinal);
    }

    /** Any other of the driver's {@code CUdevice_attribute} values. */
    public int attribute(int attribute) {
        return attribute(ordinal, attribute);
    }

    private static int attribute(int ordinal, int attribute) {
        return (int) GET_ATTRIBUTE.ask(attribute, ordinal);
    }
}
