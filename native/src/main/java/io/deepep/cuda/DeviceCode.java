package io.deepep.cuda;

import java.net.URL;

/**
 * Finds the binaries of kernels. They lie in the folders of their modules' packages, but in jars of
 * their own, which are on the class path also where the modules are on the module path: a class
 * would look in its own module alone.
 */
public final class DeviceCode {
    private DeviceCode() {}

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
