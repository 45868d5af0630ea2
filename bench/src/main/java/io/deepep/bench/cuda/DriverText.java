package io.deepep.bench.cuda;

import io.deepep.cuda.CudaDriver;
import io.deepep.spi.posix.SysFiles;
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
        return SysFiles.text(MODULE_VERSION).map(own -> cuda + ", driver " + own).orElse(cuda);
    }
}
