package io.deepep.cuda;

import java.net.URL;

/**
 * Finds the binaries of kernels. They lie in the folders of their modules' packages, but in jars of
 * their own, which are on the class path also where the modules are on the module path: a class
 * would look in its own module alone.
 */
public final class DeviceCode {
    /** How to get binaries that call NVSHMEM. */
    public static final String NVSHMEM_CURE =
            "depend on io.deepep:deepep with the classifier linux-x86_64-cuda13-nvshmem3; in a checkout, build with nvcc"
                    + " (CUDA 13), and with NVSHMEM_HOME set to a folder that has lib/libnvshmem_device.a and"
                    + " include/nvshmem.h";

    private DeviceCode() {}

    /** How to get all other binaries. */
    public static String cure() {
        return cure(System.getProperty("os.arch"));
    }

    /**
     * How to get them on a processor.
     *
     * @param processor as Java names it
     */
    static String cure(String processor) {
        return ("depend on io.deepep:deepep with the classifier linux-%s-cuda13 (on the class path, also beside"
                        + " modules); in a checkout, build with nvcc (CUDA 13), or give -Dnvcc=/path/to/nvcc")
                .formatted(processor.equals("aarch64") ? processor : "x86_64");
    }

    /**
     * A binary.
     *
     * @param owner a class of the module that the kernel belongs to
     * @param path as {@code io/deepep/normal/normal_layout.fatbin}
     * @return null if there is none
     */
    public static URL find(Class<?> owner, String path) {
        return owner.getClassLoader().getResource(path);
    }
}
