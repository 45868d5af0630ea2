package io.deepep.bench.cuda;

import io.deepep.cuda.CudaDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The NVIDIA driver in a few words, for records. */
public final class DriverText {
    private static final Path MODULE_VERSION = Path.of("/sys/module/nvidia/version");

    private DriverText() {}

    /**
     * Such as {@code CUDA 13.0, driver 580.159.03}; without the latter where the kernel does not
     * tell.
     */
    public static String get() {
        String cuda = "CUDA " + CudaDriver.versionName(CudaDriver.version());
        try {
            return cuda + ", driver " + Files.readString(MODULE_VERSION).strip();
        } catch (IOException untold) {
            return cuda;
        }
    }
}
