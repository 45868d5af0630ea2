package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.cuda.driver.CuLibrary;
import io.deepep.error.DeepEpException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The CUDA driver of this machine, started on first use. Asking whether it is there never fails;
 * {@link #ensureAvailable()} does, with cause and cure.
 *
 * <p>Before the driver starts, {@code CUDA_DEVICE_MAX_CONNECTIONS=32} is set unless the user has
 * set it: kernels of several ranks that wait for one another on one GPU need it. Code that starts
 * the driver earlier in this process has to set it itself.
 */
public final class CudaDriver {
    /** The oldest driver that has everything bound here: CUDA 12.5. */
    static final int MIN_VERSION = 12050;

    private static final System.Logger LOG = System.getLogger(CudaDriver.class.getName());
    private static final CuCall INIT = CuCall.of("cuInit", JAVA_INT);
    private static final CuCall DRIVER_GET_VERSION = CuCall.of("cuDriverGetVersion", ADDRESS);
    private static final CuCall DEVICE_GET_COUNT = CuCall.of("cuDeviceGetCount", ADDRESS);

    /** Starts the driver once, on first use. */
    private static final class Holder {
        static final Optional<DeepEpUnavailableException> FAILURE = start();
    }

    private CudaDriver() {}

    /** Whether there is a driver that is new enough and at least one GPU. */
    public static boolean isAvailable() {
        return Holder.FAILURE.isEmpty();
    }

    /** Why CUDA cannot be used here, with cause and cure; empty if it can. */
    public static Optional<String> unavailabilityReason() {
        return Holder.FAILURE.map(Throwable::getMessage);
    }

    /**
     * Returns if CUDA can be used.
     *
     * @throws DeepEpUnavailableException cause and cure
     */
    public static void ensureAvailable() {
        if (Holder.FAILURE.isPresent()) {
            DeepEpUnavailableException failure = Holder.FAILURE.get();
            throw new DeepEpUnavailableException(failure.reason(), failure.cure(), failure);
        }
    }

    /**
     * Whether another library of this process started the driver first: it then has as many
     * hardware queues as the environment said at that time, 8 if it said nothing.
     */
    public static boolean wasStartedBefore() {
        return CuLibrary.wasStartedBefore();
    }

    /** The newest CUDA version the driver supports, as 1000 × major + 10 × minor. */
    public static int version() {
        return (int) DRIVER_GET_VERSION.ask();
    }

    /** Number of GPUs this process may use, after {@code CUDA_VISIBLE_DEVICES}. */
    public static int numDevices() {
        ensureAvailable();
        return (int) DEVICE_GET_COUNT.ask();
    }

    /** All GPUs this process may use. */
    public static List<CudaDevice> devices() {
        return IntStream.range(0, numDevices()).mapToObj(CudaDevice::of).toList();
    }

    private static Optional<DeepEpUnavailableException> start() {
        DeepEpUnavailableException failure = CuLibrary.failure().orElseGet(CudaDriver::init);
        if (failure != null) {
            LOG.log(System.Logger.Level.DEBUG, "CUDA is not available: {0}", failure.getMessage());
        }
        return Optional.ofNullable(failure);
    }

    /** Null if the driver started. */
    private static DeepEpUnavailableException init() {
        try {
            int version = version();
            if (version < MIN_VERSION) {
                return tooOld(version);
            }
            INIT.call(0);
            return DEVICE_GET_COUNT.ask() == 0 ? initFailed(CuError.NO_DEVICE, null) : null;
        } catch (NativeCallException e) {
            return initFailed(e.code(), e);
        } catch (DeepEpUnavailableException e) {
            return e;
        }
    }

    static DeepEpUnavailableException tooOld(int version) {
        return new DeepEpUnavailableException(
                "the NVIDIA driver supports CUDA %s, but at least %s is needed"
                        .formatted(versionName(version), versionName(MIN_VERSION)),
                "install a newer driver (R555 or later; R580 or later for code built by CUDA 13)");
    }

    static DeepEpUnavailableException initFailed(int code, DeepEpException cause) {
        String reason =
                "the NVIDIA driver did not start: " + CuError.name(code) + " (" + code + ")";
        String cure =
                switch (code) {
                    case CuError.NO_DEVICE ->
                            "make a GPU visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a"
                                    + " container, --gpus all";
                    case CuError.STUB_LIBRARY ->
                            "the loader found the toolkit's stub libcuda.so.1: take the stubs"
                                    + " folder out of LD_LIBRARY_PATH";
                    case CuError.SYSTEM_NOT_READY ->
                            "start the fabric manager, which GPUs behind NVSwitches need: sudo"
                                    + " systemctl start nvidia-fabricmanager";
                    case CuError.SYSTEM_DRIVER_MISMATCH ->
                            "libcuda.so.1 and the kernel module are of different versions: reboot"
                                    + " or reinstall the driver";
                    default ->
                            "check nvidia-smi and the kernel log (dmesg | grep NVRM), or stay on"
                                    + " the host (Device.host(), --backend host)";
                };
        return new DeepEpUnavailableException(reason, cure, cause);
    }

    /** As people write it: 13.0 for 13000. */
    public static String versionName(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }
}
